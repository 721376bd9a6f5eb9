"""The spans of calls, where OpenTelemetry is used; the only module of the kernel that knows it.

Runs in the user's kernel: a span is opened on the thread and in the context of its call, so that
spans that the tool makes are its children, and ended on whichever thread answers the call. It goes
where the notebook's author sends spans. If the author has not set OpenTelemetry up, it goes where
the variables say (`span_export`), if tracing is on at all. OpenTelemetry is not imported unless
somebody else has, or tracing is on.
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
"""What OpenTelemetry's ``error.type`` is for each end that is an error."""


class CallSpan:
    """The span of a call that runs.

    Args:
        span: OpenTelemetry's.
        trace: The trace that the call's own requests belong to.
    """

    def __init__(self, span: "Span", trace: Trace) -> None:
        self._span = span
        self.trace = trace

    def end(self, state: CallState) -> None:
        """End the span, with how the call ended but nothing of what it returned."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - it is loaded, as there is a span

        try:
            if state in _ERROR_TYPES:
                self._span.set_attribute("error.type", _ERROR_TYPES[state])
                self._span.set_status(StatusCode.ERROR)
            self._span.end()
        except Exception:
            logger.debug("a span could not be ended", exc_info=True)


OpenSpan: TypeAlias = Callable[[str, Trace], CallSpan | None]
"""Opens the span of a call of a tool, given the trace that the client says; None for no span."""


class CallSpans:
    """Opens the spans of a notebook's calls.

    Args:
        exports: Whether they leave the process if the author has not set OpenTelemetry up.
    """

    def __init__(self, *, exports: bool = False) -> None:
        self._provider: TracerProvider | None = None
        if exports:
            # If the notebook logs nowhere, Python prints what exporters log: into the user's cells.
            logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
            try:
                self._provider = open_provider("mcp-notebook-kernel")
            except McpNotebookError as error:
                logger.info("%s", error)  # the bridge says so to whoever started it

    def close(self) -> None:
        """Let the last spans leave the process, within a bounded time."""
        provider, self._provider = self._provider, None
        if provider is not None:
            close_provider(provider)

    def open(self, tool: str, trace: Trace) -> CallSpan | None:
        """Open the span of a call in the current context, which is that of the call alone."""
        if find_imported(_API) is None:
            return None
        try:
            return self._open(tool, trace)
        except Exception:
            logger.debug("a span could not be opened", exc_info=True)
            return None  # the author's set-up may be anything; the call goes on without

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
