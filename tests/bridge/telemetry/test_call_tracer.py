"""The span of a call, as the bridge makes it; the kernel answers as the test tells it."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest
from kernel_stand_ins import peer, welcome
from linked_servers import make_server
from live import TIMEOUT
from mcp import Client

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.telemetry.call_tracer import CallTracer
from mcp_notebook.wire import messages

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

pytestmark = pytest.mark.anyio

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CLIENT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b", "baggage": "user=ada"}
TEXT = {"type": "text", "text": "secret 7"}


class Traced:
    """A client of a traced bridge whose kernel answers as the test says."""

    def __init__(self, client, kernel, links, tracer, exporter):
        self.client, self.kernel, self.links = client, kernel, links
        self.tracer, self.exporter = tracer, exporter

    async def call(self, answer=None, *, meta=CLIENT, name="top"):
        """Call the tool and return what the kernel was told; without an answer, its link ends."""
        self.kernel.called = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._call, name, meta)
            await self.kernel.called.wait()
            heard = self.kernel.heard[-1]
            if answer is None:
                self.links.end_calls()
            else:
                self.kernel.say(messages.Returned(id=heard.id, **answer))
        return heard

    async def _call(self, name, meta):
        await self.client.call_tool(name, {"password": "secret 7"}, meta=meta)

    @property
    def span(self):
        """The only span that has ended."""
        (span,) = self.exporter.get_finished_spans()
        return span


@asynccontextmanager
async def traced(home, era="auto", **options):
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    catalog = Catalog()
    async with (
        peer(home, welcome("top")) as kernel,
        Links(catalog) as links,
    ):
        await links.connect(kernel.record)
        tracer = CallTracer(provider)
        server = make_server(catalog, links, observers=[tracer])
        async with Client(server.mcp, mode=era, **options) as client:
            with anyio.fail_after(TIMEOUT):
                yield Traced(client, kernel, links, tracer, exporter)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_span_tells_which_tool_was_called_by_whom_and_how_it_ended(tmp_path, era):
    async with traced(tmp_path, era) as here:
        await here.call({"content": [TEXT], "queue_seconds": 0.25, "run_seconds": 0.5})
        kernel_id = here.kernel.record.id
    attributes = dict(here.span.attributes)
    assert here.span.name == "tools/call top"
    assert here.span.kind.name == "SERVER"
    assert here.span.status.status_code.name == "UNSET"
    assert attributes.pop("jsonrpc.request.id")
    assert attributes.pop("mcp.protocol.version") >= "2025"
    assert attributes.pop("mcp_notebook.client").startswith("mcp ")
    assert attributes.pop("mcp_notebook.call.id")
    assert attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "top",
        "network.transport": "pipe",
        "mcp_notebook.caller": "owner",
        "mcp_notebook.kernel.id": kernel_id,
        "mcp_notebook.notebook": "sales",
        "mcp_notebook.outcome": "ok",
        "mcp_notebook.queue_seconds": 0.25,
        "mcp_notebook.run_seconds": 0.5,
        "mcp_notebook.result.size": 8,
    }


@pytest.mark.parametrize(
    ("answer", "outcome", "error_type"),
    [
        ({"content": [TEXT], "is_error": True}, "error", "tool_error"),
        ({"content": [TEXT], "is_error": True, "stopped": "cancelled"}, "cancelled", "cancelled"),
        ({"content": [TEXT], "is_error": True, "stopped": "timed out"}, "timed out", "timeout"),
        (None, "lost", "kernel_lost"),
    ],
)
async def test_a_span_tells_that_a_call_failed_but_not_what_was_said(
    tmp_path, answer, outcome, error_type
):
    async with traced(tmp_path) as here:
        await here.call(answer)
    assert here.span.status.status_code.name == "ERROR"
    assert here.span.attributes["error.type"] == error_type
    assert here.span.attributes["mcp_notebook.outcome"] == outcome
    assert "secret" not in json.dumps(json.loads(here.span.to_json()))


async def test_no_span_is_kept_of_a_call_that_cannot_be_started(tmp_path):
    async with traced(tmp_path) as here:
        find_link = here.links.find_own_link  # the link closes between the search and the call

        def find_closed_link(entry):
            link = find_link(entry)
            link.is_open = False
            return link

        here.links.find_own_link = find_closed_link
        assert (await here.client.call_tool("top", {})).is_error
    assert not here.exporter.get_finished_spans()
    assert not here.tracer._spans
