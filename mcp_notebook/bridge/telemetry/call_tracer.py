"""The span of each call, as OpenTelemetry's conventions for MCP describe it.

Runs on the bridge's event loop, and only where calls are traced: the provider's own thread sends
the spans (`span_export`). The span begins when the call is sent to its kernel and ends with its
result, even if its client needs several requests. The kernel's own spans are its children.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_notebook._version import __version__
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart, ViewRead

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

MAX_CLIENT_TEXT = 200
"""Characters of an attribute that the client chooses."""
_ERROR_TYPES = {
    "error": "tool_error",
    "cancelled": "cancelled",
    "timed out": "timeout",
    "lost": "kernel_lost",
}
"""OpenTelemetry's ``error.type`` for each outcome that is an error."""


class CallTracer:
    """Creates the spans; a `CallObserver`.

    Spans contain no arguments, results or error messages, which may quote both.

    Args:
        provider: Receives the spans.
    """

    def __init__(self, provider: "TracerProvider") -> None:
        self._tracer = provider.get_tracer("mcp_notebook", __version__)
        self._spans: dict[str, Span] = {}
        """The spans of open calls, by call id."""

    @contextmanager
    def open(
        self, start: CallStart, trace: Mapping[str, str], request: Mapping[str, str]
    ) -> Iterator[dict[str, str]]:
        """Begin the span of a call that is started in the block; discard it if the block fails.

        Args:
            start: The call.
            trace: The client's trace, as W3C's headers.
            request: More attributes, from the client's request.

        Returns:
            The trace context for the kernel, as W3C's headers.
        """
        from opentelemetry.trace import SpanKind, set_span_in_context  # noqa: PLC0415
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        w3c = tracecontext.TraceContextTextMapPropagator()
        attributes = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": start.tool,
            "mcp_notebook.call.id": start.id,
            "mcp_notebook.caller": start.caller,
            "mcp_notebook.client": start.client[:MAX_CLIENT_TEXT],
            "mcp_notebook.kernel.id": start.kernel,
            "mcp_notebook.notebook": start.notebook,
            **{name: value[:MAX_CLIENT_TEXT] for name, value in request.items()},
        }
        span = self._tracer.start_span(
            f"tools/call {start.tool}",
            w3c.extract(trace),
            kind=SpanKind.SERVER,
            attributes=attributes,
        )
        headers = dict(trace)
        w3c.inject(headers, set_span_in_context(span))
        self._spans[start.id] = span
        try:
            yield headers
        except BaseException:
            del self._spans[start.id]  # never ended, so never exported
            raise

    def note_start(self, start: CallStart) -> None:
        """Do nothing: `open` has begun the span."""

    def note_end(self, end: CallEnd) -> None:
        """End the span of a call."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - only where calls are traced

        span = self._spans.pop(end.start.id)
        span.set_attribute("mcp_notebook.outcome", end.outcome)
        span.set_attribute("mcp_notebook.result.size", end.size)
        if end.queue_seconds is not None:
            span.set_attribute("mcp_notebook.queue_seconds", end.queue_seconds)
        if end.run_seconds is not None:
            span.set_attribute("mcp_notebook.run_seconds", end.run_seconds)
        if end.outcome in _ERROR_TYPES:
            span.set_attribute("error.type", _ERROR_TYPES[end.outcome])
            span.set_status(StatusCode.ERROR)
        span.end()

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Do nothing: a refused call has no span."""

    def note_view(self, read: ViewRead) -> None:
        """Do nothing: a query of a view has no span."""
