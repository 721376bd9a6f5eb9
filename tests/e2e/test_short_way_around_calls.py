"""What surrounds calls is alike on both ways: traces, first tools, lost kernels, the end."""

import json
import os

import anyio
import mcp.server._streamable_http_modern as sdk_modern
import pytest
from held_calls import (  # noqa: F401 - fixtures, too
    TOOLS,
    asking,
    both_pipes,
    check_alike,
    has_ended,
    holding_kernel,
    let_go,
    make_call,
    on_both,
    protocol_era,
    take_lines,
    take_notes,
    until,
    wait_for_notes,
)
from live import live_kernel, record_of, soon
from short_way import both_sides, make_request, normalise_message

from mcp_notebook.bridge.server.sessions.client_profile import TASKS_EXTENSION
from mcp_notebook.bridge.transports.fast_path import http_exchange

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="pipes")]


async def test_a_list_and_a_call_wait_for_the_first_tools(kernel, era):
    async def ask(side):
        answers = []
        listing = make_call(era, "echo")
        listing.message |= {"method": "tools/list"}
        listing.message["params"] = {"_meta": listing.message["params"]["_meta"]}
        listing.body = json.dumps(listing.message).encode()
        listing.headers = [
            (name, "tools/list" if name == "mcp-method" else value)
            for name, value in listing.headers
            if name != "mcp-name"
        ]
        for request in (listing, make_call(era, "nobody", 2)):
            ready.append(anyio.Event())
            async with asking(side, request) as answer:
                await waits.wait()
                assert not answer
                ready[-1].set()
            answers += answer
        return answers

    ready = []

    class Waits:
        def __init__(self):
            self._event = anyio.Event()

        async def __call__(self):
            self._event.set()
            await ready[-1].wait()

        async def wait(self):
            with anyio.fail_after(30):
                await self._event.wait()
            self._event = anyio.Event()

    waits = Waits()
    async with both_sides([record_of(kernel)], kernel.home, ready=waits) as sides:
        check_alike([await ask(side) for side in sides])


@pytest.mark.parametrize("tool", ["may_be_task", "is_task", "echo"])
@pytest.mark.parametrize("capabilities", [{}, {"extensions": {TASKS_EXTENSION: {}}}])
async def test_a_call_that_becomes_a_task(kernel, era, tool, capabilities):
    async def ask(side):
        answer = await side.ask(make_call(era, tool, capabilities=capabilities))
        await has_ended(side)
        return answer, take_notes(side)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike([await ask(side) for side in sides])


async def test_a_call_whose_kernel_dies_is_lost(home):
    async def lose(side, _name):
        calls = [make_call(era, "hold", name=era) for era in ("handshake", "modern")]
        async with asking(side, calls[0]) as older, asking(side, calls[1]) as newer:
            await wait_for_notes(side, "CallEnd", 2)
        return older, newer, sorted(take_notes(side))

    async def kill(side):
        for era in ("handshake", "modern"):
            await until(side, era, 2)
        own.manager.provisioner.process.kill()

    with live_kernel(home) as own:
        own.ok("%load_ext mcp_notebook")
        own.ok(TOOLS)
        async with both_sides([record_of(own)], home) as sides, anyio.create_task_group() as tasks:
            tasks.start_soon(kill, sides[0])
            check_alike(await on_both(sides, lose, ""))


async def test_the_end_of_the_endpoint_answers_its_calls(kernel, era):
    async def end(side, name):
        async with asking(side, make_call(era, "hold", name=name)) as answers:
            await until(side, name)
            await side.endpoint.end()
        assert not len(side.endpoint._sessions)
        return answers, take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike(await on_both(sides, end, f"{era}-ends"))


async def test_a_client_that_waits_is_told_that_its_call_runs(kernel, monkeypatch):
    """Up to 2025-11-25 by pings of a library, each with its time."""
    monkeypatch.setattr(sdk_modern, "_SSE_PING_INTERVAL", 0.1)
    monkeypatch.setattr(http_exchange, "PING_INTERVAL", 0.1)

    async def wait(side, name):
        async with asking(side, make_call("modern", "hold", name=name)) as answers:
            await until(side, name)
            await soon(lambda: any(b": ping" in each.body for each in side.open_exchanges))
            await let_go(side, name)
        ((status, headers, content),) = answers
        return status, headers, [each for each in content if "ping" not in str(each)]

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        found = await on_both(sides, wait, "pinged")
    check_alike([str(each).replace("SDK", "sho") for each in found])


LONG_TEXT = "x" * 100_000
"""Of a result that is cut, and so adds its original to the list of resources."""


async def test_a_result_that_adds_a_resource_is_told_as_one_change_of_their_list(
    kernel, era, monkeypatch
):
    async def ask(pipes):
        if era == "modern":
            await pipes.send(make_listening().body)
            assert b"acknowledged" in await pipes.receive()
        told = []
        for number in range(3):
            await pipes.send(make_call(era, "echo", number, value=LONG_TEXT).body)
            with anyio.fail_after(30):
                both = [await pipes.receive() for _ in range(2)]  # in whichever order
            told.append(sorted(map(normalise_message, both)))
            assert sum(b"notifications/resources/list_changed" in each for each in both) == 1
        await pipes.send(make_call(era, "echo", "last", value="short").body)
        return told, await take_lines(pipes, "last")

    async with both_pipes(kernel, era) as clients:
        for side, _ in clients:
            for pause in ("_delay", "_interval"):
                monkeypatch.setattr(side.server.resource_notices, pause, 0)
        found = [await ask(pipes) for _, pipes in clients]
    check_alike(found)
    assert len(found[0][1]) == 1


def make_listening():
    """Return the request of a client that wants to hear of changes of the list of resources."""
    request = make_call("modern", "")
    params = {"_meta": request.message["params"]["_meta"]}
    params["notifications"] = {"resourcesListChanged": True}
    request.message |= {"id": "listening", "method": "subscriptions/listen", "params": params}
    request.body = json.dumps(request.message).encode()
    return request


async def test_pages_of_resources_lead_to_the_same_list(kernel):
    async def read_all(side):
        listed, cursor = [], {}
        while True:
            message = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": cursor}
            status, *_ = await side.ask(make_request(message, session="usual"))
            assert status == 200
            text = side.body.decode()
            result = json.loads(text[text.index("{") :])["result"]
            assert len(result["resources"]) <= 3
            listed += result["resources"]
            if "nextCursor" not in result:
                return listed
            cursor = {"cursor": result["nextCursor"]}

    async with both_sides([record_of(kernel)], kernel.home, page_size=3) as sides:
        for side in sides:
            for _ in range(4):
                await side.ask(make_call("handshake", "echo", value=LONG_TEXT))
        found = [await read_all(side) for side in sides]
    check_alike(found)
    assert len(found[0]) >= 8
