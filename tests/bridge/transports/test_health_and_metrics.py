"""``/healthz`` and ``/metrics``, over HTTP."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from bridges import TOKEN
from endpoints import call, called, served

from mcp_notebook.bridge.access.caller import NOTHING, Caller, Permissions
from mcp_notebook.bridge.access.token_check import Limited, OwnToken
from mcp_notebook.bridge.telemetry.metrics import MAX_TOOLS, Metrics, Reading, ToolNumbers
from mcp_notebook.wire import messages

parser = pytest.importorskip("prometheus_client.parser")
openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")

DOCUMENTATION = Path(__file__).parents[3] / "docs/operate/observability.md"
MORE_OF_THE_BRIDGE = ("mcp_notebook_kernels", "mcp_notebook_tools")
"""What only a whole bridge knows: see ``tests/bridge/test_app.py``."""

pytestmark = pytest.mark.anyio


class Reader:
    """Tokens with which nothing may be changed."""

    challenge = "Bearer"

    def __init__(self, **rights):
        self.rights = {"permissions": Permissions(read_only=True)} | rights

    async def authenticate(self, token):  # noqa: ARG002 - all of them
        return Caller(name="reader", **self.rights)

    def has_ended(self, caller):  # noqa: ARG002 - none
        return False


async def get(here, path, method="GET", **headers):
    """Ask for another path of the endpoint, without a body."""
    return await here.send(b"", method, headers, path=path)


def read_samples(page, parse=parser.text_string_to_metric_families):
    """Return what finds a sample of a page by its name and the values of its labels."""
    samples = {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in parse(page.decode())
        for sample in family.samples
    }
    return lambda name, *labels: samples[f"mcp_notebook_{name}", frozenset(labels)]


# -- whether it is up ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": None}, {"Authorization": "Bearer wrong"}, {"Host": "elsewhere.example"}],
    ids=["no token", "wrong token", "another host"],
)
async def test_everybody_may_ask_whether_the_bridge_is_up_and_learns_nothing_else(home, headers):
    async with served(home) as here:
        answer = await get(here, "/healthz", **headers)
        assert (answer.status, answer.body) == (200, b"ok")
        kept = {name.lower() for name in answer.headers}
        assert kept == {"date", "content-type", "content-length", "cache-control"}
        head = await get(here, "/healthz", "HEAD", **headers)
        assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/healthz", "POST"),
        ("/healthz", "OPTIONS"),
        ("/healthz/", "GET"),
        ("/healthz/mcp", "GET"),
        ("//healthz", "GET"),
        ("/metrics", "GET"),
        ("/metrics", "HEAD"),
    ],
)
async def test_everything_else_needs_the_token(home, path, method):
    async with served(home) as here:
        assert (await get(here, path, method, Authorization=None)).status == 401
        assert (await get(here, path, method, Host="elsewhere.example")).status == 403


# -- the numbers -----------------------------------------------------------------------------------


async def test_the_page_has_what_happened_to_calls(home):
    metrics = Metrics()
    async with served(home, metrics=metrics) as here, anyio.create_task_group() as tasks:
        session = await here.open_session()

        async def ask(request, *answers):
            async with anyio.create_task_group() as asking:
                asking.start_soon(here.send_call, request, session)
                await called(here.kernel, request["id"])
                for answer in answers:
                    here.kernel.say(answer)

        text = {"type": "text", "text": "no"}
        await ask(call(1), messages.Returned(id=1, content=[], queue_seconds=0.3))
        await ask(call(2), messages.Returned(id=2, content=[text], is_error=True))
        stopped = {"content": [text], "is_error": True, "stopped": "cancelled"}
        await ask(call(3), messages.Returned(id=3, **stopped))
        unknown = call(4)
        unknown["params"]["name"] = "no_such_tool"
        await here.send_call(unknown, session)
        tasks.start_soon(here.send_call, call(5), session)
        await called(here.kernel, 4)
        await get(here, "/mcp", Authorization="Bearer wrong")
        answer = await get(here, "/metrics")
        here.kernel.say(messages.Returned(id=4, content=[]))
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    read = read_samples(answer.body)
    for outcome in ("ok", "error", "cancelled"):
        assert read("calls_total", "sales", "top", outcome) == 1
    assert read("call_seconds_count", "sales", "top") == 3
    assert read("call_queue_seconds_bucket", "sales", "top", "0.2") == 0
    assert read("call_queue_seconds_bucket", "sales", "top", "0.5") == 1
    assert read("call_queue_seconds_bucket", "sales", "top", "+Inf") == 1
    assert read("refused_calls_total") == 1
    assert read("refused_requests_total") == 1
    assert read("open_calls", "sales") == 1
    assert read("sessions") == 1
    if sys.platform == "linux":
        assert b"\nprocess_resident_memory_bytes " in answer.body
    assert b"no_such_tool" not in answer.body
    families = re.findall(rb"# HELP (mcp_notebook_\w+)", answer.body)
    documented = set(re.findall(r"`(mcp_notebook_\w+)`", DOCUMENTATION.read_text("utf-8")))
    assert {name.decode() for name in families} == documented - {*MORE_OF_THE_BRIDGE}


async def test_the_page_can_be_in_the_form_of_openmetrics(home):
    metrics = Metrics()
    metrics.readings.append(Reading("kernels", "Kernels.", lambda: 2))
    async with served(home, metrics=metrics) as here:
        answer = await get(here, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    read = read_samples(answer.body, openmetrics.text_string_to_metric_families)
    assert read("kernels") == 2


async def test_names_that_are_awkward_are_quoted(home):
    metrics = Metrics()
    metrics.tools['a"b\\\n', "ü"] = ToolNumbers()
    metrics.tools['a"b\\\n', "ü"].outcomes["ok"] += 1
    async with served(home, metrics=metrics) as here:
        answer = await get(here, "/metrics")
    assert read_samples(answer.body)("calls_total", 'a"b\\\n', "ü", "ok") == 1


async def test_the_page_stays_small_however_many_tools_there_were(home):
    metrics = Metrics()
    for number in range(MAX_TOOLS):
        metrics.tools["sales", f"tool_number_{number}"] = ToolNumbers()
    async with served(home, metrics=metrics) as here:
        answer = await get(here, "/metrics")
    assert len(answer.body) < 2**20


async def test_who_may_not_call_every_tool_does_not_see_the_numbers(home):
    async with served(home, authenticators=[Reader()]) as here:
        answer = await get(here, "/metrics")
        assert answer.status == 403
        assert "mcp-notebook token add NAME --metrics" in answer.body.decode()


@pytest.mark.parametrize(
    "authenticator",
    [
        OwnToken(TOKEN),
        Limited(OwnToken(TOKEN), lambda: Permissions(read_only=True)),
        Reader(permissions=NOTHING, may_read_metrics=True),
    ],
    ids=["owner", "owner of a limited server", "token for the metrics"],
)
async def test_the_owner_and_who_has_a_token_for_them_see_the_numbers(home, authenticator):
    async with served(home, authenticators=[authenticator]) as here:
        assert (await get(here, "/metrics")).status == 200


@pytest.mark.parametrize(
    "permissions",
    [NOTHING, NOTHING.limit_to(Permissions(read_only=True)), replace(NOTHING, hidden=("a",))],
    ids=["plain", "on a limited server", "beside an exclusive token"],
)
async def test_a_token_for_the_metrics_opens_nothing_else(home, permissions):
    token = Reader(permissions=permissions, may_read_metrics=True)
    async with served(home, authenticators=[token]) as here:
        for method in ("POST", "GET", "DELETE"):
            answer = await here.ask(call(), method=method)
            assert (answer.status, b"for the metrics only" in answer.body) == (403, True)
    assert not [message for message in here.kernel.heard if isinstance(message, messages.Call)]


async def test_the_numbers_can_only_be_read(home):
    async with served(home) as here:
        answer = await get(here, "/metrics", "POST")
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        head = await get(here, "/metrics", "HEAD")
        assert (head.status, head.body) == (200, b"")


async def test_without_the_library_the_page_says_how_to_install_it(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    async with served(home) as here:
        answer = await get(here, "/metrics")
        assert answer.status == 501
        assert "pip install -e '.[observability]'" in answer.body.decode()
