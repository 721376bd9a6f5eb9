"""Calls that wait for their client: which state gets which call back, and for how long."""

import anyio
import pytest

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, RunningCall
from mcp_notebook.bridge.questions import parked_calls as parking
from mcp_notebook.bridge.questions.parked_calls import ParkedCalls
from mcp_notebook.errors import CallError, KernelGone, UnknownState
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
ME, OTHER = (Caller(name=name, is_user=True) for name in ("me", "somebody else"))
ASK = messages.Ask(id=1, question=1, key="q", message="Sure?", form={})


async def test_a_state_gets_its_call_back_once_and_for_the_same_request_of_its_caller_only(call):
    parked = ParkedCalls()
    state = parked.park(call, ME, "top", {"a": 1, "b": [True]})
    for name, arguments in [("top", {"a": 1}), ("other", {"a": 1, "b": [True]})]:
        with pytest.raises(UnknownState):
            parked.take(state, ME, name, arguments)
    with pytest.raises(UnknownState):
        parked.take(state, ME, "top", {"a": 1, "b": [1]})
    with pytest.raises(UnknownState):
        parked.take(f"{state}x", ME, "top", {"a": 1, "b": [True]})
    with pytest.raises(UnknownState):
        parked.take(state, OTHER, "top", {"a": 1, "b": [True]})
    assert parked.take(state, ME, "top", {"b": [True], "a": 1}) is call
    with pytest.raises(UnknownState, match="Invalid or expired requestState"):
        parked.take(state, ME, "top", {"a": 1, "b": [True]})


async def test_each_state_is_another_one(call):
    parked = ParkedCalls()
    states = set()
    for _ in range(3):
        states.add(parked.park(call, ME, "top", {}))
    assert len(states) == 3
    assert all(len(state) >= 40 for state in states)


async def test_a_call_whose_client_does_not_come_back_is_cancelled(monkeypatch):
    monkeypatch.setattr(parking, "ANSWER_LIMIT", 0)
    sent, told = [], anyio.Event()

    def send(message):
        sent.append(message)
        told.set()

    parked = ParkedCalls()
    state = parked.park(RunningCall(1, send), ME, "top", {})
    with anyio.fail_after(60):
        await told.wait()
    assert sent == [messages.Cancel(id=1, reason=parking.NO_ANSWER)]
    assert parking.NO_ANSWER == "Nobody answered the tool's question within 10 minutes."
    with pytest.raises(UnknownState):
        parked.take(state, ME, "top", {})
    assert len(parked) == 0


async def test_only_so_many_calls_are_parked_and_a_close_cancels_them(call, sent):
    parked = ParkedCalls()
    for number in range(parking.MAX_PARKED):
        parked.park(
            RunningCall(number, sent.append),
            Caller(name=f"caller {number}", is_user=True),
            "top",
            {},
        )
    with pytest.raises(CallError, match="all callers together can have 32 at a time"):
        parked.park(call, ME, "top", {})
    parked.close()
    assert len(sent) == parking.MAX_PARKED
    assert len(parked) == 0


async def test_the_calls_of_one_caller_leave_room_for_those_of_others(call):
    parked = ParkedCalls()
    states = [parked.park(call, ME, "top", {}) for _ in range(parking.MAX_CALLER_PARKED)]
    with pytest.raises(CallError, match="open questions: one caller can have 16 at a time"):
        parked.park(call, ME, "top", {})
    for _ in range(parking.MAX_CALLER_PARKED):
        parked.park(call, OTHER, "top", {})
    parked.take(states[0], ME, "top", {})
    parked.park(call, ME, "top", {})
    parked.close()


async def test_a_call_that_was_lost_while_it_was_parked_says_so_to_who_comes_back(call, sent):
    parked = ParkedCalls()
    call.handle(ASK, [])
    state = parked.park(call, ME, "top", {})
    call.end(KernelGone("The kernel died."))
    with pytest.raises(KernelGone, match="died"):
        await parked.take(state, ME, "top", {}).follow(NO_LISTENER)
    call.cancel("too late")
    assert sent == []
