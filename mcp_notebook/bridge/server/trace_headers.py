"""The trace that a request belongs to, as its client says: W3C Trace Context and Baggage.

Runs on the bridge's event loop; pure. MCP has the keys in a request's ``_meta``. A client whose
library for HTTP sends the headers of that name is understood, too. What is malformed is ignored, as
W3C says; nothing else than printable ASCII passes, so that a tool can send it on as HTTP headers.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp.server.context import ServerRequestContext

_FORMS = {
    "traceparent": re.compile(
        r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    ),
    "tracestate": re.compile(r"[ -~]{1,512}"),
    "baggage": re.compile(r"[ -~]{1,8192}"),
}
"""What a value looks like; its lengths are those that W3C has every program pass on."""


def read_trace_headers(ctx: ServerRequestContext[Any]) -> dict[str, str]:
    """Return what a request says of the trace that it belongs to: W3C's headers by name."""
    headers = _select(ctx.meta or {})
    if "traceparent" not in headers and ctx.request is not None:
        headers = _select(getattr(ctx.request, "headers", {})) | headers
    return headers


def _select(values: Mapping[str, Any]) -> dict[str, str]:
    headers = {
        name: value
        for name, form in _FORMS.items()
        if isinstance(value := values.get(name), str) and form.fullmatch(value)
    }
    if "traceparent" not in headers:
        headers.pop("tracestate", None)  # it means nothing alone
    return headers
