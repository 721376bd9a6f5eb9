"""The HTTP headers that repeat parts of a message, so that proxies need not read it.

Pure. Since 2026-07-28, headers repeat the protocol version, the method, and what the method names:
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mcp_notebook.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_notebook.protocol.versions import PROTOCOL_VERSION_KEY

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
SESSION_HEADER = "mcp-session-id"
"""Up to 2025-11-25: the session that a request belongs to."""
_ROUTING = (VERSION_HEADER, METHOD_HEADER, NAME_HEADER)
NAMES: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that the header `NAME_HEADER` repeats, by method."""
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN = re.compile(r"[\x20-\x7e]*")


def encode_value(text: str) -> str:
    """Return a text as the value of a header: itself, or in base64 if a header would change it."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def decode_value(value: str | None) -> str | None:
    """Return the text that a header's value stands for; None for no header, or an invalid value."""
    encoded = None if value is None else _ENCODED.fullmatch(value)
    if encoded is None:
        return value
    try:
        data = base64.b64decode(encoded[1], validate=True)
        # Only canonical base64 is accepted, so that no proxy decodes the header to another text.
        return data.decode() if base64.b64encode(data).decode() == encoded[1] else None
    except ValueError:  # not base64, not ASCII, or not UTF-8
        return None


def list_headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request of 2026-07-28; {} for one without a version in its meta."""
    meta = params.get("_meta")
    version = meta.get(PROTOCOL_VERSION_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(version, str):
        return {}
    headers = {VERSION_HEADER: encode_value(version), METHOD_HEADER: encode_value(method)}
    name = params.get(NAMES.get(method, ""))
    return headers | {NAME_HEADER: encode_value(name)} if isinstance(name, str) else headers


def check_headers(
    fields: Iterable[tuple[bytes, bytes]], headers: Mapping[str, str], method: str, params: Any
) -> None:
    """Check that a request's headers repeat its body.

    Args:
        fields: The headers as they came.
        headers: The same by name.
        method: The request's method.
        params: Its parameters, with an object as ``_meta``.

    Raises:
        ProtocolError: A header is missing, differs, or came twice.
    """
    names = [name for name, _ in fields]
    for name in _ROUTING:
        if names.count(name.encode()) > 1:
            raise ProtocolError(HEADER_MISMATCH, f"The header {name} came more than once.")
    for name, value in (
        (VERSION_HEADER, params["_meta"].get(PROTOCOL_VERSION_KEY)),
        (METHOD_HEADER, encode_value(method)),
    ):
        if headers.get(name) is None or headers[name] != value:
            what = "protocol version" if name == VERSION_HEADER else "method"
            message = f"The header {name} must equal the {what} in the request's body."
            raise ProtocolError(HEADER_MISMATCH, message)
    key = NAMES.get(method)
    value = None if key is None else params.get(key)
    if value is not None and decode_value(headers.get(NAME_HEADER)) != value:
        message = f"The header {NAME_HEADER} must equal the {key!r} in the request's body."
        raise ProtocolError(HEADER_MISMATCH, message)
