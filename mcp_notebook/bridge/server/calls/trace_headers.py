"""The trace that a request belongs to, as its client says, and what a span says of a request.

Runs on the bridge's event loop; pure. The trace is in the words of W3C's Trace Context and Baggage,
which MCP has in a request's ``_meta``. The HTTP headers of that name are understood as well. What
is malformed is ignored, as W3C says; nothing but printable ASCII passes, so that a tool can send it
on as HTTP headers.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_notebook.bridge.server.protocol.client_request import ClientRequest

_FORMS = {
    "traceparent": re.compile(
        r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    ),
    "tracestate": re.compile(r"[ -~]{1,512}"),
    "baggage": re.compile(r"[ -~]{1,8192}"),
}
"""What a value looks like; its lengths are those that W3C has every program pass on."""


def read_trace_headers(request: ClientRequest) -> dict[str, str]:
    """Return what a request says of the trace that it belongs to: W3C's headers by name."""
    headers = _select(request.meta)
    if "traceparent" not in headers and request.headers is not None:
        headers = _select(request.headers) | headers
    return headers


def describe_request(request: ClientRequest) -> dict[str, str]:
    """Return what OpenTelemetry's conventions for MCP say of a request."""
    attributes = {
        "mcp.protocol.version": request.protocol_version,
        "jsonrpc.request.id": str(request.id),
        "network.transport": "pipe" if request.headers is None else "tcp",
    }
    session = (request.headers or {}).get("mcp-session-id")
    return attributes if session is None else attributes | {"mcp.session.id": session}


def _select(values: Mapping[str, Any]) -> dict[str, str]:
    if _FORMS.keys().isdisjoint(values):
        return {}
    headers = {
        name: value
        for name, form in _FORMS.items()
        if isinstance(value := values.get(name), str) and form.fullmatch(value)
    }
    if "traceparent" not in headers:
        headers.pop("tracestate", None)  # it means nothing alone
    return headers
