"""Recognises plain requests: those of the usual form, which are answered without the SDK.

Runs on the bridge's event loop; no I/O. Nearly all requests use a few methods in the usual form,
but the SDK needs half a millisecond for each: a task group, two validations, and two conversions of
the whole answer. So a transport reads a request here first. If all of it is recognised,
`plain_answers` answers it. Everything else goes on to the SDK unchanged: malformed requests,
unknown parameters, other methods, answers to questions. Behind that, the same code handles both
kinds, from the caller's limits to the texts of errors.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import from_json, to_json

from mcp_notebook.bridge.server.listing.pages import LIST_METHODS
from mcp_notebook.bridge.server.sessions.client_profile import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    LOG_LEVELS,
    PROTOCOL_VERSION_META_KEY,
    ClientProfile,
    read_profile,
)

CALL = "tools/call"
INITIALIZE, DISCOVER, PING = "initialize", "server/discover", "ping"
_MEMBERS = {"jsonrpc", "id", "method", "params"}
_PARAMS = {
    CALL: {"_meta", "name", "arguments"},
    **{method: {"_meta", "cursor"} for method in LIST_METHODS},
    INITIALIZE: {"protocolVersion", "capabilities", "clientInfo"},
    DISCOVER: {"_meta"},
    PING: {"_meta"},
}
_RESERVED = (
    PROTOCOL_VERSION_META_KEY,
    CLIENT_INFO_META_KEY,
    CLIENT_CAPABILITIES_META_KEY,
    LOG_LEVEL_META_KEY,
)
"""The members of ``_meta`` in which a client describes itself."""
_MAX_ENVELOPE = 4_096
"""Maximum size in bytes of an envelope in the LRU cache."""


@dataclass(frozen=True)
class PlainRequest:
    """A plain request whose protocol version and HTTP headers have not been read yet."""

    id: int | str
    method: str
    params: Mapping[str, Any]
    meta: Mapping[str, Any]
    """Its ``_meta``."""
    text: bytes
    """Its JSON."""


def read_plain_request(
    text: bytes, methods: Collection[str] = (CALL, *LIST_METHODS)
) -> PlainRequest | None:
    """Return the plain request in a JSON text, or None for any other message.

    Args:
        text: A message.
        methods: The methods that are answered without the SDK.
    """
    try:
        message = from_json(text)
    except ValueError:
        return None
    if not isinstance(message, dict) or not message.keys() <= _MEMBERS:
        return None
    request_id: Any = message.get("id")
    method, params = message.get("method"), message.get("params", {})
    if (
        message.get("jsonrpc") != "2.0"
        or type(request_id) not in (int, str)
        or not isinstance(method, str)
        or method not in methods
        or not isinstance(params, dict)
        or not params.keys() <= _PARAMS[method]
        or not _has_plain_values(method, params)
    ):
        return None
    return PlainRequest(request_id, method, params, params.get("_meta", {}), text)


@dataclass(frozen=True)
class PlainNotification:
    """A notification of the usual form."""

    method: str
    params: Mapping[str, Any]


def read_plain_notification(text: bytes, methods: Collection[str]) -> PlainNotification | None:
    """Return the notification in a JSON text, or None for any other message.

    Args:
        text: A message.
        methods: The methods that are handled without the SDK.
    """
    try:
        message = from_json(text)
    except ValueError:
        return None
    if not isinstance(message, dict) or not message.keys() <= _MEMBERS - {"id"}:
        return None
    method, params = message.get("method"), message.get("params", {})
    if (
        message.get("jsonrpc") != "2.0"
        or not isinstance(method, str)
        or method not in methods
        or not isinstance(params, dict)
        or type(params.get("_meta", {})) is not dict
    ):
        return None
    return PlainNotification(method, params)


def _has_plain_values(method: str, params: dict[str, Any]) -> bool:
    """Return whether all parameters have the types that the SDK accepts."""
    if method == CALL:
        if type(params.get("name")) is not str or type(params.get("arguments", {})) is not dict:
            return False
    elif method == INITIALIZE:
        return type(params.get("protocolVersion")) is str
    elif type(params.get("cursor", "")) is not str:
        return False
    meta = params.get("_meta", {})
    return (
        type(meta) is dict
        and type(meta.get("progressToken", "")) in (int, str)
        and "progress_token" not in meta  # the SDK's own name for it
    )


def has_envelope(params: Mapping[str, Any] | None) -> bool:
    """Return whether the parameters are of 2026-07-28 or later."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def select_envelope(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request's ``_meta`` in which its client describes itself."""
    return {name: meta[name] for name in _RESERVED if name in meta}


def read_envelope(meta: Mapping[str, Any]) -> ClientProfile | None:
    """Return the client's profile in a request's ``_meta``; None if the SDK has to read it.

    Cached, because clients repeat it in each request.
    """
    try:
        text = to_json(select_envelope(meta))
    except ValueError:
        return None
    return _read_envelope(text) if len(text) <= _MAX_ENVELOPE else None


@lru_cache(maxsize=256)
def _read_envelope(text: bytes) -> ClientProfile | None:
    meta = from_json(text)
    version, level = meta.get(PROTOCOL_VERSION_META_KEY), meta.get(LOG_LEVEL_META_KEY)
    if version not in MODERN_PROTOCOL_VERSIONS or level not in (None, *LOG_LEVELS):
        return None
    return read_profile(
        version, meta.get(CLIENT_INFO_META_KEY), meta.get(CLIENT_CAPABILITIES_META_KEY)
    )
