"""Calls that wait for their client: which state gets which call back, and for how long."""

import asyncio

import anyio
import pytest

from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, Listener, RunningCall
from mcp_notebook.bridge.server import parked_calls as parking
from mcp_notebook.bridge.server.parked_calls import ParkedCalls
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, KernelGone, UnknownState
from mcp_notebook.wire import content_blocks, messages

pytestmark = pytest.mark.anyio
ASK = messages.Ask(id=1, question=1, key="q", message="Sure?", form={})


@pytest.fixture
def sent():
    return []


@pytest.fixture
async def call(sent):
    return RunningCall(1, sent.append)


async def test_a_state_gets_its_call_back_once_and_for_the_same_request_only(call):
    parked = ParkedCalls()
    state = parked.park(call, "top", {"a": 1, "b": [True]})
    for name, arguments in [("top", {"a": 1}), ("other", {"a": 1, "b": [True]})]:
        with pytest.raises(UnknownState):
            parked.take(state, name, arguments)
    with pytest.raises(UnknownState):
        parked.take(state, "top", {"a": 1, "b": [1]})
    with pytest.raises(UnknownState):
        parked.take(f"{state}x", "top", {"a": 1, "b": [True]})
    assert parked.take(state, "top", {"b": [True], "a": 1}) is call
    with pytest.raises(UnknownState, match="Invalid or expired requestState"):
        parked.take(state, "top", {"a": 1, "b": [True]})


async def test_each_state_is_another_one(call):
    parked = ParkedCalls()
    states = set()
    for _ in range(3):
        states.add(parked.park(call, "top", {}))
    assert len(states) == 3
    assert all(len(state) >= 40 for state in states)


async def test_a_call_whose_client_does_not_come_back_is_cancelled(monkeypatch):
    monkeypatch.setattr(parking, "ANSWER_LIMIT", 0)
    sent, told = [], anyio.Event()

    def send(message):
        sent.append(message)
        told.set()

    parked = ParkedCalls()
    state = parked.park(RunningCall(1, send), "top", {})
    with anyio.fail_after(5):
        await told.wait()
    assert sent == [messages.Cancel(id=1, reason=parking.NO_ANSWER)]
    assert parking.NO_ANSWER == "Nobody answered the tool's question within 10 minutes."
    with pytest.raises(UnknownState):
        parked.take(state, "top", {})
    assert len(parked) == 0


async def test_only_so_many_calls_are_parked_and_a_close_cancels_them(call, sent):
    parked = ParkedCalls()
    for _ in range(parking.MAX_PARKED):
        parked.park(call, "top", {})
    with pytest.raises(CallError, match=f"{parking.MAX_PARKED} calls already wait for answers"):
        parked.park(call, "top", {})
    parked.close()
    assert len(sent) == parking.MAX_PARKED
    assert len(parked) == 0


async def test_who_follows_a_call_hears_of_its_questions_and_keeps_what_came_meanwhile(call, sent):
    heard = []

    async def hear(message):
        heard.append(message)

    listener = Listener(progress=hear, log=hear, log_level="info")
    log = messages.Log(id=1, level="info", text="asks")
    call.handle(log, [])
    call.handle(ASK, [])
    assert await call.follow(listener) is None
    assert heard == [log]
    assert list(call.questions.values()) == [ASK]
    call.handle(messages.Progress(id=1, message="waiting for the user's answer for 5 s"), [])
    reply = messages.Answer(id=1, question=1, action="accept")
    call.answer(reply)
    call.answer(reply)  # it is no longer open
    assert sent == [reply]
    late = messages.Progress(id=1, progress=1)
    follower = asyncio.ensure_future(call.follow(listener))
    await anyio.wait_all_tasks_blocked()
    call.handle(late, [])
    call.handle(messages.Log(id=1, level="info", text="goes on"), [])
    await anyio.wait_all_tasks_blocked()
    assert late in heard
    assert len(heard) == 3
    call.handle(*content_blocks.pack_result(1, Result([Text("done")])))
    assert await follower == Result((Text("done"),))


async def test_a_question_that_is_taken_back_is_no_longer_open(call):
    call.handle(ASK, [])
    call.handle(messages.Withdraw(id=1, question=1), [])
    assert await call.follow(NO_LISTENER, open_questions={1}) is None
    assert call.questions == {}


async def test_a_call_that_was_lost_while_it_was_parked_says_so_to_who_comes_back(call, sent):
    parked = ParkedCalls()
    call.handle(ASK, [])
    state = parked.park(call, "top", {})
    call.end(KernelGone("The kernel died."))
    with pytest.raises(KernelGone, match="died"):
        await parked.take(state, "top", {}).follow(NO_LISTENER)
    call.cancel("too late")
    assert sent == []
