"""What a client hears before its answer, and that a call ends when it has gone."""

import asyncio
import base64

import anyio
import anyio.lowlevel
import pytest

from mcp_notebook.bridge.server.requests import Base64Text
from mcp_notebook.bridge.server.sessions.client_request import RequestChannel
from mcp_notebook.bridge.transports import http_exchange
from mcp_notebook.bridge.transports.http_exchange import (
    MAX_EVENT,
    RESPONSE_MOVES,
    WORK_MOVES,
    HttpExchange,
    ResponseMove,
    ResponseState,
    WorkMove,
    WorkState,
)

pytestmark = pytest.mark.anyio


class Wire:
    """The connection of one exchange."""

    def __init__(self):
        self.sent = []
        self.gone = anyio.Event()
        self.has_sent = anyio.Event()

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)
        self.has_sent.set()

    @property
    def body(self):
        return b"".join(item.get("body", b"") for item in self.sent)


def test_the_tables_name_every_state_and_every_exchange_can_end():
    assert set(RESPONSE_MOVES) == set(ResponseState)
    assert set(WORK_MOVES) == set(WorkState)
    open_responses = set(ResponseState) - {ResponseState.OVER}
    assert all(ResponseMove.ANSWER in RESPONSE_MOVES[state] for state in open_responses)
    begun = set(WorkState) - {WorkState.UNBEGUN, WorkState.ENDED}
    assert all(WORK_MOVES[state][WorkMove.END] is WorkState.ENDED for state in begun)


async def test_what_precedes_the_answer_makes_it_a_stream():
    wire = Wire()
    exchange = HttpExchange(wire.receive, wire.send)
    with exchange:
        channel = RequestChannel(exchange.send, {"progressToken": "p"})
        await channel.send_progress(1, 2, "half")
        await exchange.answer([b'{"id"', b":1}"], 400)
    assert wire.sent[0]["status"] == 200
    assert wire.body == (
        b"event: message\r\n"
        b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":'
        b'{"progressToken":"p","progress":1,"total":2,"message":"half"}}\r\n\r\n'
        b'event: message\r\ndata: {"id":1}\r\n\r\n'
    )
    assert not wire.sent[-1].get("more_body")


@pytest.mark.parametrize("size", [0, 1, 2, 3, 100_000, 196_608, 500_000])
async def test_bytes_become_base64_while_they_are_sent(size):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    wire = Wire()
    await HttpExchange(wire.receive, wire.send).answer([b"<", Base64Text(data), b">"], 200)
    assert wire.body == b"<%b>" % base64.b64encode(data)
    assert dict(wire.sent[0]["headers"])[b"content-length"] == b"%d" % len(wire.body)
    assert not wire.sent[-1].get("more_body")


async def test_unwanted_progress_is_not_sent():
    wire = Wire()
    channel = RequestChannel(HttpExchange(wire.receive, wire.send).send, {})
    await channel.send_progress(1, None, None)
    assert wire.sent == []


async def test_a_silent_call_gives_signs_of_life(monkeypatch):
    monkeypatch.setattr(http_exchange, "WATCH_DELAY", 0.0)
    monkeypatch.setattr(http_exchange, "PING_INTERVAL", 0.01)
    wire = Wire()
    exchange = HttpExchange(wire.receive, wire.send)
    with anyio.fail_after(30):
        with exchange:
            await wire.has_sent.wait()
            await exchange.answer([b"{}"], 200)
    assert wire.body.startswith(b": ping\r\n\r\n")
    assert wire.body.endswith(b"event: message\r\ndata: {}\r\n\r\n")


@pytest.mark.parametrize("before", [False, True], ids=["silent", "stream"])
async def test_nothing_follows_the_answer(before):
    wire = Wire()
    exchange = HttpExchange(wire.receive, wire.send)
    if before:
        await exchange.send(b"{}")
    await exchange.answer([b"[]"], 200)
    sent = list(wire.sent)
    await exchange.send(b"{}")
    assert wire.sent == sent
    assert not sent[-1].get("more_body")


async def test_a_client_that_goes_ends_its_call(monkeypatch):
    monkeypatch.setattr(http_exchange, "PING_INTERVAL", 3600.0)  # nor does it wait for that
    wire = Wire()
    exchange = HttpExchange(wire.receive, wire.send)
    with anyio.fail_after(30):
        with exchange:
            wire.gone.set()
            await anyio.sleep_forever()
    assert wire.sent == []


async def test_work_that_is_cancelled_twice_is_left_once():
    exchange = HttpExchange(Wire().receive, Wire().send)
    task = asyncio.current_task()
    with exchange:
        exchange.end("cancelled")
        exchange.end("session ended")
        await anyio.sleep_forever()
    assert task.cancelling() == 0


async def test_who_cancels_the_request_as_well_is_heard():
    exchange = HttpExchange(Wire().receive, Wire().send)
    began = asyncio.Event()

    async def call():
        with exchange:
            began.set()
            await anyio.sleep_forever()
        return "went on"

    request = asyncio.create_task(call())
    await began.wait()
    exchange.end("cancelled")
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


async def test_a_cancelled_call_whose_stream_could_not_begin_is_answered_all_the_same():
    wire = Wire()
    is_full = True

    async def send(message):
        if is_full:
            wire.has_sent.set()
            await anyio.sleep_forever()
        await wire.send(message)

    exchange = HttpExchange(wire.receive, send)
    async with anyio.create_task_group() as tasks:

        async def call():
            with exchange:
                await exchange.send(b"{}")

        tasks.start_soon(call)
        await wire.has_sent.wait()
        exchange.end("cancelled")
    is_full = False
    await exchange.answer([b"{}"], 200)
    assert [item["type"] for item in wire.sent] == ["http.response.start", "http.response.body"]


async def test_the_log_says_that_clients_may_refuse_a_large_answer_in_a_stream(caplog):
    wire = Wire()
    exchange = HttpExchange(wire.receive, wire.send)
    await exchange.answer([b"x" * MAX_EVENT], 200)
    assert caplog.messages == []
    exchange = HttpExchange(wire.receive, wire.send)
    await exchange.send(b"{}")
    await exchange.answer([b"x" * MAX_EVENT], 200)
    [said] = caplog.messages
    assert said.startswith("An answer of 1,048,")
