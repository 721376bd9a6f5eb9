"""A client's description of itself: in `initialize`, since 2026-07-28 in each request's ``_meta``.

Runs on the bridge's event loop; no I/O. Nearly all clients send a simple form, which is read here
without the SDK. For anything else `read_profile` returns None, and the SDK reads or refuses it
(`profile_from_sdk`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.bridge.views.pages import MIME_TYPE
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    import mcp_types as types

PROTOCOL_VERSION_META_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY = "io.modelcontextprotocol/serverInfo"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
"""MCP's extension for calls that outlive their clients."""
VIEW_EXTENSION = "io.modelcontextprotocol/ui"
"""MCP Apps: https://github.com/modelcontextprotocol/ext-apps, specification of 2026-01-26."""
SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""Skills (SEP-2640): https://github.com/modelcontextprotocol/ext-skills."""
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least severe on."""
MAX_NAME = 200
"""Maximum length of the name or the version of a client's program."""
CAPABILITIES = ("elicitation", "experimental", "extensions", "roots", "sampling", "tasks")
"""What clients can declare, in MCP's versions together."""
_INFO_TEXTS = ("title", "description", "websiteUrl")


@dataclass(frozen=True)
class ClientProfile:
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

    @cached_property
    def is_handshake(self) -> bool:
        """Whether the client has a session and can be sent requests: the era up to 2025-11-25."""
        return self.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS

    @cached_property
    def can_follow_tasks(self) -> bool:
        """Whether the client can follow a call that has become a task."""
        return TASKS_EXTENSION in self.capabilities and not self.is_handshake

    @cached_property
    def program(self) -> str:
        """Name and version of the client's program on one line; empty if it does not say."""
        return f"{self.client.name} {self.client.version}".strip()


def read_profile(
    version: str, info: Any, capabilities: Any, connection: Any = None
) -> ClientProfile | None:
    """Return a client's profile, or None if the SDK has to read its description.

    Args:
        version: Of the protocol, as negotiated.
        info: Its ``clientInfo``; None if it has sent none.
        capabilities: Its capabilities.
        connection: See `ClientProfile.connection`.
    """
    if not _is_simple_info(info) or not _are_simple_capabilities(capabilities):
        return None
    elicitation = capabilities.get("elicitation")
    return ClientProfile(
        version,
        messages.ClientInfo()
        if info is None
        else messages.ClientInfo(name=info["name"][:MAX_NAME], version=info["version"][:MAX_NAME]),
        can_elicit=elicitation is not None,
        shows_forms=elicitation is not None and ("form" in elicitation or "url" not in elicitation),
        capabilities=frozenset(
            [
                *(name for name in messages.CAPABILITIES if name in capabilities),
                *capabilities.get("extensions", ()),
            ]
        ),
        shows_views=shows_views(capabilities.get("extensions")),
        only_samples=only_samples(capabilities),
        connection=connection,
    )


def profile_from_sdk(
    version: str,
    params: types.InitializeRequestParams | None,
    capabilities: types.ClientCapabilities | None,
    connection: Any = None,
) -> ClientProfile:
    """Return the profile of a client whose `initialize` or envelope the SDK has read."""
    client = messages.ClientInfo()
    if params is not None:
        info = params.client_info
        client = messages.ClientInfo(name=info.name[:MAX_NAME], version=info.version[:MAX_NAME])
    elicitation = None if capabilities is None else capabilities.elicitation
    extensions = None if capabilities is None else capabilities.extensions
    return ClientProfile(
        version,
        client,
        can_elicit=elicitation is not None,
        shows_forms=elicitation is not None
        and (elicitation.form is not None or elicitation.url is None),
        capabilities=frozenset(
            [
                *(
                    each
                    for each in messages.CAPABILITIES
                    if getattr(capabilities, each, None) is not None
                ),
                *(extensions or ()),
            ]
        ),
        shows_views=shows_views(extensions),
        only_samples=capabilities is not None
        and only_samples(capabilities.model_dump(exclude_none=True)),
        connection=connection,
    )


def shows_views(extensions: Mapping[str, Any] | None) -> bool:
    """Return whether a client shows live views: it says so, and names the format of our pages."""
    formats = ((extensions or {}).get(VIEW_EXTENSION) or {}).get("mimeTypes")
    return isinstance(formats, list) and MIME_TYPE in formats


def only_samples(capabilities: Mapping[str, Any]) -> bool:
    """Return whether sampling is the only one of MCP's capabilities that a client declares."""
    return [name for name in CAPABILITIES if capabilities.get(name) is not None] == ["sampling"]


def _is_simple_info(info: Any) -> bool:
    if info is None:
        return True
    return (
        type(info) is dict
        and type(info.get("name")) is str
        and type(info.get("version")) is str
        and all(type(info.get(name, "")) is str for name in _INFO_TEXTS)
        and "icons" not in info
    )


def _are_simple_capabilities(capabilities: Any) -> bool:
    if type(capabilities) is not dict:
        return False
    roots = capabilities.get("roots", {})
    return (
        type(roots) is dict
        and type(roots.get("listChanged", True)) is bool
        and all(
            _is_object_of_objects(capabilities.get(name, {}))
            for name in ("experimental", "extensions")
        )
        and all(
            _is_nested_objects(capabilities.get(name, {}))
            for name in ("elicitation", "sampling", "tasks")
        )
    )


def _is_object_of_objects(value: Any) -> bool:
    return type(value) is dict and all(type(item) is dict for item in value.values())


def _is_nested_objects(value: Any) -> bool:
    """Return whether a value is an object whose members are all such objects, at any depth."""
    return type(value) is dict and all(map(_is_nested_objects, value.values()))
