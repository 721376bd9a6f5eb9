"""OpenTelemetry spans of calls; the kernel's only module that uses OpenTelemetry.

Runs in the user's kernel. A span is opened on the thread and in the context of its call, so the
tool's own spans are its children, and ended on the thread that answers the call. It is exported as
the notebook's author has configured OpenTelemetry; without a configuration, and if tracing is on,
as the environment variables say (`span_export`). OpenTelemetry is imported only if the notebook has
imported it, or if tracing is on.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_notebook._version import __version__
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.tools.context import Trace
from mcp_notebook.span_export import close_provider, open_provider

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

logger = logging.getLogger(__name__)

_API = "opentelemetry.trace"
_ERROR_TYPES = {
    CallState.FAILED: "tool_error",
    CallState.CANCELLED: "cancelled",
    CallState.TIMED_OUT: "timeout",
    CallState.LOST: "kernel_lost",
}
"""OpenTelemetry's ``error.type`` for each state that is an error."""


class CallSpan:
    """The span of a running call.

    Args:
        span: The OpenTelemetry span.
        trace: The trace context for requests that the call makes.
    """

    def __init__(self, span: "Span", trace: Trace) -> None:
        self._span = span
        self.trace = trace

    def end(self, state: CallState) -> None:
        """End the span with the call's final state; it has no data of the result."""
        try:
            from opentelemetry.trace import StatusCode  # noqa: PLC0415 - loaded, as there is a span

            if state in _ERROR_TYPES:
                self._span.set_attribute("error.type", _ERROR_TYPES[state])
                self._span.set_status(StatusCode.ERROR)
            self._span.end()
        except Exception:
            logger.debug("a span could not be ended", exc_info=True)


OpenSpan: TypeAlias = Callable[[str, Trace], CallSpan | None]
"""Opens the span of a call, given the tool and the client's trace; returns None for no span."""


class CallSpans:
    """Opens the spans of a notebook's calls.

    Args:
        exports: Whether to export them if the author has not configured OpenTelemetry.
    """

    def __init__(self, *, exports: bool = False) -> None:
        self._provider: TracerProvider | None = None
        if exports:
            # Without a logging configuration, exporters' warnings would appear in the user's cells.
            logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
            try:
                self._provider = open_provider("mcp-notebook-kernel")
            except McpNotebookError as error:
                logger.info("%s", error)  # the bridge reports it to the user

    def close(self) -> None:
        """Export the last spans, within a bounded time."""
        provider, self._provider = self._provider, None
        if provider is not None:
            close_provider(provider)

    def open(self, tool: str, trace: Trace) -> CallSpan | None:
        """Open the span of a call in the current context, which belongs to the call."""
        if find_imported(_API) is None:
            return None
        try:
            return self._open(tool, trace)
        except Exception:
            logger.debug("a span could not be opened", exc_info=True)
            return None  # the author's configuration may raise anything

    def _open(self, tool: str, trace: Trace) -> CallSpan:
        from opentelemetry import context  # noqa: PLC0415 - loaded, see `open`
        from opentelemetry.baggage.propagation import W3CBaggagePropagator  # noqa: PLC0415
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        w3c = TraceContextTextMapPropagator()
        parent = W3CBaggagePropagator().extract(trace.headers, w3c.extract(trace.headers))
        span = self._find_tracer().start_span(
            f"execute_tool {tool}",
            parent,
            attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
        )
        current = set_span_in_context(span, parent)
        context.attach(current)
        headers: dict[str, str] = {}
        w3c.inject(headers, current)
        return CallSpan(span, Trace.from_headers(trace.headers | headers))

    def _find_tracer(self) -> Any:
        from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider  # noqa: PLC0415

        provider = get_tracer_provider()
        if self._provider is not None and isinstance(provider, ProxyTracerProvider):
            return self._provider.get_tracer("mcp_notebook", __version__)
        return provider.get_tracer("mcp_notebook", __version__)
