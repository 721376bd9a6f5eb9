"""The spans of calls, in a kernel whose author uses OpenTelemetry, and in one that does not."""

import json
import logging
import sys
from contextvars import copy_context
from dataclasses import dataclass

import pytest
from live import Link, record_of

from mcp_notebook.kernel.calls.spans import CallSpans
from mcp_notebook.kernel.tools.context import Trace

pytest.importorskip("opentelemetry.sdk.trace")

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CLIENT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "baggage": "user=ada"}
UNTRACED = """%%mcp_tool
def loaded() -> bool:
    "Whether OpenTelemetry is loaded."
    import sys
    return "opentelemetry" in sys.modules
"""
SET_UP = """
import asyncio, json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from mcp_notebook import Context, mcp_tool
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("author")
threads, processes = ThreadPoolExecutor(1), ProcessPoolExecutor(1, get_context("spawn"))

def work():
    with tracer.start_as_current_span("inner"):
        return None

def read_span():
    span = trace.get_current_span().get_span_context()
    return {"trace": f"{span.trace_id:032x}", "span": f"{span.span_id:016x}"}
"""
TOOLS = {
    "main": "%%mcp_tool\ndef main(fail: bool = False):\n    if fail:\n        1 / 0\n    work()",
    "coroutine": "%%mcp_tool\nasync def coroutine():\n    await asyncio.sleep(0)\n    work()",
    "thread": "%%mcp_tool --run thread\ndef thread():\n    work()",
    "pool": "@mcp_tool(executor=threads)\ndef pool():\n    work()",
}
MORE = """%%mcp_tool
def find_trace(ctx: Context) -> dict:
    return ctx.trace.headers | read_span() | {"user": baggage.get_baggage("user")}

async def forever():
    await asyncio.sleep(600)
"""
ELSEWHERE = """@mcp_tool(executor=processes)
def elsewhere() -> dict:
    return read_span() | {"user": baggage.get_baggage("user")}
"""
READ = """print(json.dumps([
    dict(json.loads(span.to_json()), id=f"{span.context.span_id:016x}",
        trace=f"{span.context.trace_id:032x}", parent=span.parent and f"{span.parent.span_id:016x}")
    for span in exporter.get_finished_spans()]))
exporter.clear()"""


@dataclass
class Traced:
    """A kernel whose author keeps all spans."""

    kernel: object
    link: Link

    def call(self, tool, *, trace=CLIENT, **arguments):
        """Call a tool."""
        self.link.start(tool, trace=trace, **arguments)
        return self.link.result()

    def read_spans(self):
        """Return the spans that have ended, in order."""
        return json.loads(self.kernel.ok(READ).stdout)


def test_a_kernel_without_tracing_does_not_load_opentelemetry(shared_kernel):
    shared_kernel.ok(UNTRACED)
    with Link(record_of(shared_kernel)) as link:
        for _ in range(2):
            link.start("loaded", trace=CLIENT)
            assert link.result().content[0].text == "false"


@pytest.fixture(scope="module")
def traced(shared_kernel):
    for code in (SET_UP, *TOOLS.values(), MORE, ELSEWHERE):
        shared_kernel.ok(code)
    with Link(record_of(shared_kernel)) as link:
        yield Traced(shared_kernel, link)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_span_of_the_tool_is_a_child_of_the_calls_which_is_one_of_the_clients(traced, tool):
    assert not traced.call(tool).is_error
    inner, call = traced.read_spans()
    assert (call["name"], call["trace"], call["parent"]) == (f"execute_tool {tool}", TRACE, SPAN)
    assert call["attributes"]["gen_ai.tool.name"] == tool
    assert (inner["name"], inner["trace"], inner["parent"]) == ("inner", TRACE, call["id"])
    assert call["status"]["status_code"] == "UNSET"


def test_a_worker_of_an_executor_goes_on_in_the_span_of_the_call(traced):
    result = json.loads(traced.call("elsewhere").content[0].text)
    (call,) = traced.read_spans()
    assert result == {"trace": TRACE, "span": call["id"], "user": "ada"}


def test_the_trace_of_a_tool_is_that_of_the_span_that_its_own_are_children_of(traced):
    result = json.loads(traced.call("find_trace").content[0].text)
    (call,) = traced.read_spans()
    assert result == {
        "trace": TRACE,
        "span": call["id"],
        "user": "ada",
        "traceparent": f"00-{TRACE}-{call['id']}-01",
        "baggage": "user=ada",
    }


def test_a_call_that_fails_ends_its_span_as_an_error_without_saying_what_was_in_it(traced):
    assert traced.call("main", fail=True).is_error
    (call,) = traced.read_spans()
    assert call["status"] == {"status_code": "ERROR"}
    assert call["attributes"]["error.type"] == "tool_error"
    assert "ZeroDivisionError" not in json.dumps(call)


def test_a_call_answers_although_the_authors_opentelemetry_is_broken(traced):
    traced.kernel.ok("real, provider.get_tracer = provider.get_tracer, None")
    assert not traced.call("main").is_error
    traced.kernel.ok("provider.get_tracer = real")
    assert [span["name"] for span in traced.read_spans()] == ["inner"]


def test_what_exporters_log_is_not_printed_into_cells():
    logger = logging.getLogger("opentelemetry")
    before = logger.handlers[:]
    spans = CallSpans(exports=True)
    try:
        assert [type(handler) for handler in logger.handlers[len(before) :]] == [
            logging.NullHandler
        ]
    finally:
        spans.close()
        logger.handlers[:] = before


def test_without_the_library_a_call_keeps_the_trace_of_its_client(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    spans = CallSpans(exports=True)
    span = copy_context().run(spans.open, "top", Trace.from_headers(CLIENT))
    assert span.trace.headers == CLIENT
    spans.close()


def test_a_cell_after_a_call_has_no_span(traced):
    traced.call("main")
    traced.kernel.ok("work()")
    assert [span["parent"] is None for span in traced.read_spans()] == [False, False, True]
