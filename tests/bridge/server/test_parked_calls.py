"""Calls that wait for their client: which state gets which call back, and for how long."""

import anyio
import pytest

from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, RunningCall
from mcp_notebook.bridge.server import parked_calls as parking
from mcp_notebook.bridge.server.parked_calls import ParkedCalls
from mcp_notebook.errors import CallError, KernelGone, UnknownState
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
ASK = messages.Ask(id=1, question=1, key="q", message="Sure?", form={})


async def test_a_state_gets_its_call_back_once_and_for_the_same_request_of_its_caller_only(call):
    parked = ParkedCalls()
    state = parked.park(call, "me", "top", {"a": 1, "b": [True]})
    for name, arguments in [("top", {"a": 1}), ("other", {"a": 1, "b": [True]})]:
        with pytest.raises(UnknownState):
            parked.take(state, "me", name, arguments)
    with pytest.raises(UnknownState):
        parked.take(state, "me", "top", {"a": 1, "b": [1]})
    with pytest.raises(UnknownState):
        parked.take(f"{state}x", "me", "top", {"a": 1, "b": [True]})
    with pytest.raises(UnknownState):
        parked.take(state, "somebody else", "top", {"a": 1, "b": [True]})
    assert parked.take(state, "me", "top", {"b": [True], "a": 1}) is call
    with pytest.raises(UnknownState, match="Invalid or expired requestState"):
        parked.take(state, "me", "top", {"a": 1, "b": [True]})


async def test_each_state_is_another_one(call):
    parked = ParkedCalls()
    states = set()
    for _ in range(3):
        states.add(parked.park(call, "me", "top", {}))
    assert len(states) == 3
    assert all(len(state) >= 40 for state in states)


async def test_a_call_whose_client_does_not_come_back_is_cancelled(monkeypatch):
    monkeypatch.setattr(parking, "ANSWER_LIMIT", 0)
    sent, told = [], anyio.Event()

    def send(message):
        sent.append(message)
        told.set()

    parked = ParkedCalls()
    state = parked.park(RunningCall(1, send), "me", "top", {})
    with anyio.fail_after(60):
        await told.wait()
    assert sent == [messages.Cancel(id=1, reason=parking.NO_ANSWER)]
    assert parking.NO_ANSWER == "Nobody answered the tool's question within 10 minutes."
    with pytest.raises(UnknownState):
        parked.take(state, "me", "top", {})
    assert len(parked) == 0


async def test_only_so_many_calls_are_parked_and_a_close_cancels_them(call, sent):
    parked = ParkedCalls()
    for number in range(parking.MAX_PARKED):
        parked.park(RunningCall(number, sent.append), f"caller {number}", "top", {})
    with pytest.raises(CallError, match="all callers together can have 32 at a time"):
        parked.park(call, "me", "top", {})
    parked.close()
    assert len(sent) == parking.MAX_PARKED
    assert len(parked) == 0


async def test_the_calls_of_one_caller_leave_room_for_those_of_others(call):
    parked = ParkedCalls()
    states = [parked.park(call, "me", "top", {}) for _ in range(parking.MAX_CALLER_PARKED)]
    with pytest.raises(CallError, match="open questions: one caller can have 16 at a time"):
        parked.park(call, "me", "top", {})
    for _ in range(parking.MAX_CALLER_PARKED):
        parked.park(call, "somebody else", "top", {})
    parked.take(states[0], "me", "top", {})
    parked.park(call, "me", "top", {})
    parked.close()


async def test_a_call_that_was_lost_while_it_was_parked_says_so_to_who_comes_back(call, sent):
    parked = ParkedCalls()
    call.handle(ASK, [])
    state = parked.park(call, "me", "top", {})
    call.end(KernelGone("The kernel died."))
    with pytest.raises(KernelGone, match="died"):
        await parked.take(state, "me", "top", {}).follow(NO_LISTENER)
    call.cancel("too late")
    assert sent == []
