"""A client's description of itself: in `initialize`, since 2026-07-28 in each request's ``_meta``.

Runs on the bridge's event loop; no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from msgspec import Struct

from mcp_notebook.bridge.views.pages import MIME_TYPE
from mcp_notebook.protocol.errors import (
    INVALID_PARAMS,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from mcp_notebook.protocol.methods import LogLevel
from mcp_notebook.protocol.versions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
)
from mcp_notebook.wire import messages

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
"""MCP's extension for calls that outlive their clients."""
VIEW_EXTENSION = "io.modelcontextprotocol/ui"
"""MCP Apps: https://github.com/modelcontextprotocol/ext-apps, specification of 2026-01-26."""
SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""Skills (SEP-2640): https://github.com/modelcontextprotocol/ext-skills."""
LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
"""From least to most severe."""
MAX_NAME = 200
"""Maximum length of the name or the version of a client's program."""
CAPABILITIES = ("elicitation", "experimental", "extensions", "roots", "sampling", "tasks")
"""What clients can declare, in MCP's versions together."""


class _Info(Struct, frozen=True, rename="camel"):
    """The form of a client's ``clientInfo``; name and version are used, the rest is checked."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None


class _Elicitation(Struct, frozen=True):
    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class _Capabilities(Struct, frozen=True):
    """The form of a client's capabilities; members that are not listed here are ignored."""

    elicitation: _Elicitation | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    roots: dict[str, Any] | None = None
    sampling: dict[str, Any] | None = None
    tasks: Any = None
    """Only of 2025-11-25."""


class ClientProfile(Struct, frozen=True):
    """A client's description of itself: once per session, at 2026-07-28 in every request."""

    protocol_version: str
    """The version of MCP."""
    client: messages.ClientInfo
    """The client's program; empty if it does not say."""
    can_elicit: bool = False
    """Whether it can ask its user a question."""
    shows_forms: bool = False
    """Whether it can show its user a form, and not only web pages."""
    capabilities: frozenset[str] = frozenset()
    """The capabilities that it has declared: `messages.CAPABILITIES`, identifiers of extensions."""
    shows_views: bool = False
    """Whether it shows live views of results (MCP Apps)."""
    only_samples: bool = False
    """Whether sampling is the only capability that it declares."""
    connection: Any = None
    """The client's session (`client_sessions.ClientSession`); None at 2026-07-28."""

    @property
    def is_handshake(self) -> bool:
        """Whether the client has a session and can be sent requests: the era up to 2025-11-25."""
        return self.protocol_version in HANDSHAKE_VERSIONS

    @property
    def can_follow_tasks(self) -> bool:
        """Whether the client can follow a call that has become a task."""
        return TASKS_EXTENSION in self.capabilities and not self.is_handshake

    @property
    def program(self) -> str:
        """Name and version of the client's program on one line; empty if it does not say."""
        return f"{self.client.name} {self.client.version}".strip()


def read_profile(
    version: str, info: Any, capabilities: Any, connection: Any = None
) -> ClientProfile:
    """Return a client's profile.

    Args:
        version: Of the protocol, as negotiated.
        info: Its ``clientInfo``; None if it has sent none.
        capabilities: Its capabilities.
        connection: See `ClientProfile.connection`.

    Raises:
        ProtocolError: The description does not have the form that MCP gives it.
    """
    try:
        program = None if info is None else msgspec.convert(info, _Info)
        declared = msgspec.convert(capabilities, _Capabilities)
    except msgspec.ValidationError as error:
        what = f"Invalid request parameters: the client's description of itself: {error}."
        raise ProtocolError(INVALID_PARAMS, what) from None
    elicitation, extensions = declared.elicitation, declared.extensions or {}
    given = {name for name in CAPABILITIES if getattr(declared, name) is not None}
    return ClientProfile(
        version,
        messages.ClientInfo()
        if program is None
        else messages.ClientInfo(name=program.name[:MAX_NAME], version=program.version[:MAX_NAME]),
        can_elicit=elicitation is not None,
        shows_forms=elicitation is not None
        and (elicitation.form is not None or elicitation.url is None),
        capabilities=frozenset([*given.intersection(messages.CAPABILITIES), *extensions]),
        shows_views=_shows_views(extensions),
        only_samples=given == {"sampling"},
        connection=connection,
    )


def read_envelope(params: Mapping[str, Any] | None) -> ClientProfile:
    """Return the profile in the ``_meta`` of a request of 2026-07-28.

    The steps are those of "Per-request protocol fields" in the specification's base protocol.

    Raises:
        ProtocolError: It is missing or malformed, or in a version that is not served.
    """
    meta = (params or {}).get("_meta")
    keys = (PROTOCOL_VERSION_KEY, CLIENT_CAPABILITIES_KEY)
    missing = keys if not isinstance(meta, Mapping) else [key for key in keys if key not in meta]
    if missing or not isinstance(meta, Mapping):
        message = f"The request's `_meta` has no {' and no '.join(map(repr, missing))}."
        raise ProtocolError(INVALID_PARAMS, message)
    version = meta[PROTOCOL_VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{PROTOCOL_VERSION_KEY!r} must be a string.")
    if version not in MODERN_VERSIONS:
        raise refuse_version(version)
    level = meta.get(LOG_LEVEL_KEY)
    if level is not None and level not in LOG_LEVELS:
        allowed = ", ".join(LOG_LEVELS)
        raise ProtocolError(INVALID_PARAMS, f"{LOG_LEVEL_KEY!r} must be one of {allowed}.")
    return read_profile(version, meta.get(CLIENT_INFO_KEY), meta[CLIENT_CAPABILITIES_KEY])


def has_envelope(params: Mapping[str, Any] | None) -> bool:
    """Return whether the parameters of a request are of 2026-07-28 or later."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_KEY in meta


def refuse_version(version: str) -> ProtocolError:
    """Return the error for a version without a handshake that is not served."""
    data = {"supported": list(MODERN_VERSIONS), "requested": version}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def _shows_views(extensions: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a client shows live views: it says so, and names the format of our pages."""
    formats = extensions.get(VIEW_EXTENSION, {}).get("mimeTypes")
    return isinstance(formats, list) and MIME_TYPE in formats
