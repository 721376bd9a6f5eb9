"""The trace of a call, as its tool sees it."""

from mcp_notebook import Context
from mcp_notebook.kernel.tools.trace import Trace

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_tool_can_send_the_headers_of_its_trace_along():
    headers = {"traceparent": PARENT, "baggage": "user=ada"}
    trace = Trace.from_headers({**headers, "other": "left out"})
    assert trace == Trace(traceparent=PARENT, baggage="user=ada")
    assert Context("top", trace=trace).trace.headers == headers


def test_a_call_without_a_trace_has_no_headers():
    assert Context().trace.traceparent is None
    assert Context().trace.headers == {}
