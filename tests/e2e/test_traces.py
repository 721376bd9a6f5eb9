"""One trace from the client to the worker of an executor, as a real collector gets it."""

import anyio
import pytest
from clients import http_bridge, over_http, tool_kernel
from live import TIMEOUT
from otlp_receiver import receive_spans

sdk = pytest.importorskip("opentelemetry.sdk.trace")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")

pytestmark = pytest.mark.anyio

ADD = '%%mcp_tool\ndef add(a: int) -> int:\n    "Add."\n    return a + 1'
WORKERS = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from mcp_notebook import mcp_tool
workers = ProcessPoolExecutor(1, get_context("spawn"))
"""
SET_UP = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

def make_tracer(name):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer(name)

trace.set_tracer_provider(provider := TracerProvider())
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
"""
INNER = """%%mcp_tool
def load() -> str:
    "Load."
    with trace.get_tracer("author").start_as_current_span("read the file"):
        return "done"
"""
ELSEWHERE = """@mcp_tool(executor=workers)
def fit() -> str:
    "Fit."
    with make_tracer("worker").start_as_current_span("fit the model"):
        return "done"
"""


@pytest.fixture(scope="module")
def collected(module_home):
    """A collector, a kernel and a bridge that send their spans there."""
    with (
        receive_spans() as receiver,
        tool_kernel(module_home, WORKERS, ADD, INNER, ELSEWHERE, env=receiver.env) as kernel,
        http_bridge(module_home, env=receiver.env) as served,
    ):
        yield receiver, kernel, served.url


async def call(url, tool, **arguments):
    """Call a tool in a span of the client, and return that span."""
    tracer = sdk.TracerProvider().get_tracer("client")
    async with over_http(url, "auto") as client:
        with anyio.fail_after(TIMEOUT), tracer.start_as_current_span("client") as span:
            assert not (await client.call_tool(tool, arguments)).is_error
    return span.get_span_context()


async def spans_of(receiver, trace, count):
    """Wait for the spans of a trace, and return them by name."""
    received = await anyio.to_thread.run_sync(receiver.wait_for, trace.trace_id, count)
    return {span["name"]: span for span in received}


async def test_the_spans_of_bridge_and_kernel_leave_both_if_the_variables_say_where_to(collected):
    receiver, _, url = collected
    client = await call(url, "add", a=1)
    spans = await spans_of(receiver, client, 2)
    bridge, kernel = spans["tools/call add"], spans["execute_tool add"]
    assert bridge["parent"] == f"{client.span_id:016x}"
    assert kernel["parent"] == bridge["id"]
    assert bridge["process"]["service.name"] == "mcp-notebook"
    assert kernel["process"]["service.name"] == "mcp-notebook-kernel"
    assert bridge["attributes"]["network.transport"] == "tcp"
    assert bridge["start"] <= kernel["start"] < kernel["end"] <= bridge["end"]


@pytest.mark.slow
async def test_spans_of_the_author_are_below_that_of_the_kernel_also_on_a_worker(collected):
    receiver, kernel, url = collected
    kernel.ok(SET_UP)
    for tool, inner in (("load", "read the file"), ("fit", "fit the model")):
        client = await call(url, tool)
        spans = await spans_of(receiver, client, 3)
        chain = [f"tools/call {tool}", f"execute_tool {tool}", inner]
        parents = [f"{client.span_id:016x}", *(spans[name]["id"] for name in chain[:-1])]
        assert [spans[name]["parent"] for name in chain] == parents
