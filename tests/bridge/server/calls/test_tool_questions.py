"""Which clients can be asked, and how a failed question is told; the rest is in the e2e tests."""

import asyncio

import anyio
import pytest
from live import TIMEOUT
from msgspec import structs

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, RunningCall
from mcp_notebook.bridge.server.calls import tool_questions
from mcp_notebook.bridge.server.calls.gates import CallParams
from mcp_notebook.bridge.server.calls.tool_questions import (
    NO_ANSWER,
    ParkedCalls,
    ToolQuestions,
    ask_user,
)
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, KernelGone, UnknownState
from mcp_notebook.protocol.elicitation import ElicitResult, InputRequired
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.wire import content_blocks, messages

pytestmark = pytest.mark.anyio
NOTHING = object()
"""What a user says who never answers."""
ME, OTHER = (Caller(name=name, is_user=True) for name in ("me", "somebody else"))
ASK = messages.Ask(id=1, question=1, key="q", message="Sure?", form={})
PARAMS = CallParams("top")


class Channel:
    """The way to a request's client."""

    def __init__(self, says=None):
        self.can_ask = says is not None
        self.says = says

    async def ask(self, _form):
        if self.says is NOTHING:
            await anyio.sleep_forever()
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def request(version="2026-07-28", elicitation=None, says=None, declares=True):
    capabilities = {"elicitation": elicitation} if declares else {}
    return ClientRequest(
        profile=read_profile(version, None, capabilities),
        id=7,
        caller=OWNER,
        meta={},
        is_stdio=True,
        channel=Channel(says),
    )


@pytest.mark.parametrize(
    ("declared", "can"),
    [
        (None, False),
        ({}, True),
        ({"form": {}}, True),
        ({"form": {}, "url": {}}, True),
        ({"url": {}}, False),
    ],
)
def test_a_client_can_be_asked_that_has_declared_forms(declared, can):
    assert request(elicitation=declared).can_elicit is can
    assert request("2025-11-25", declared, says="something").can_elicit is can
    assert not request("2025-11-25", declared).can_elicit  # it has no way back to the client


def test_a_client_that_has_declared_nothing_cannot_be_asked():
    assert not request(declares=False).can_elicit


QUESTION = messages.Ask(id=1, question=1, key="q", message="Sure?", form={"type": "object"})
DONE = content_blocks.pack_result(1, Result([Text("done")]))


def asking_call(sent):
    """Return a call whose question is open; `sent` takes what the kernel is sent."""
    call = RunningCall(1, sent.append)
    call.handle(QUESTION, [])
    return call


def call_that_ends(sent):
    """Return the same, of a tool that returns when it is answered."""

    def send(message):
        sent.append(message)
        call.handle(*DONE)

    call = RunningCall(1, send)
    call.handle(QUESTION, [])
    return call


@pytest.mark.parametrize(
    ("says", "answer"),
    [
        (ElicitResult(action="decline"), {"action": "decline"}),
        (ElicitResult(action="accept", content={"a": 1}), {"content": {"a": 1}}),
        (ProtocolError(-1, "no dialog"), {"error": "The client could not ask its user: no dialog"}),
        (ValueError("bad"), {"error": "The client's answer could not be read: ValueError."}),
    ],
)
async def test_what_a_client_of_the_older_eras_says_is_the_answer(says, answer):
    sent = []
    asked = request("2025-11-25", {}, says)
    result = await ToolQuestions().follow(asked, PARAMS, call_that_ends(sent), NO_LISTENER)
    assert result == Result((Text("done"),))
    assert answer.items() <= structs.asdict(sent[0]).items()


async def test_a_cancelled_call_is_stopped_before_its_question_is_withdrawn():
    """To withdraw it takes as long as a client does not read."""
    was_asked, is_withdrawn = anyio.Event(), anyio.Event()

    class SlowChannel(Channel):
        async def ask(self, _form):
            was_asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await is_withdrawn.wait()

    sent = []
    asked = structs.replace(request("2025-11-25", {}), channel=SlowChannel(NOTHING))
    following = asyncio.create_task(
        ToolQuestions().follow(asked, PARAMS, asking_call(sent), NO_LISTENER)
    )
    with anyio.fail_after(TIMEOUT):
        await was_asked.wait()
        following.cancel()
        await anyio.wait_all_tasks_blocked()
        assert [type(message) for message in sent] == [messages.Cancel]
        is_withdrawn.set()
        with pytest.raises(asyncio.CancelledError):
            await following
    assert len(sent) == 1


async def test_a_question_that_is_never_answered_ends_by_its_limit():
    with anyio.fail_after(30):
        answer = await ask_user(request("2025-11-25", {}, NOTHING), QUESTION, answer_limit=0)
    assert answer == NO_ANSWER == "Nobody answered the tool's question within 10 minutes."


async def test_a_question_that_is_taken_back_is_closed_at_the_client_while_the_call_goes_on():
    sent, told = [], []

    async def show_form(*_request):
        told.append("shown")
        try:
            await anyio.sleep_forever()
        finally:
            told.append("closed")

    asked, call = request("2025-11-25", {}, NOTHING), asking_call(sent)
    asked.channel.ask = show_form
    follower = asyncio.ensure_future(ToolQuestions().follow(asked, PARAMS, call, NO_LISTENER))
    await anyio.wait_all_tasks_blocked()
    assert told == ["shown"]
    call.handle(messages.Withdraw(id=1, question=1), [])
    await anyio.wait_all_tasks_blocked()
    assert (told, follower.done()) == (["shown", "closed"], False)
    call.handle(*content_blocks.pack_result(1, Result([Text("did without")])))
    assert await follower == Result((Text("did without"),))
    assert sent == []


async def test_a_call_is_parked_with_its_question_and_resumed_by_its_state():
    sent, asking = [], ToolQuestions()
    call = asking_call(sent)
    parked = await asking.follow(request(elicitation={}), PARAMS, call, NO_LISTENER)
    assert isinstance(parked, InputRequired)
    (asked,) = parked.form["inputRequests"].values()
    assert (asked["params"]["message"], asked["params"]["mode"]) == ("Sure?", "form")
    params = CallParams(
        name="top",
        request_state=parked.state,
        input_responses={"q": {"action": "cancel"}, "other": SAMPLED},
    )
    assert asking.resume(OWNER, PARAMS) is None
    assert asking.resume(OWNER, params) is call
    with pytest.raises(UnknownState):
        asking.resume(OWNER, params)
    call.handle(*DONE)
    assert await asking.follow(request(), params, call, NO_LISTENER) == Result((Text("done"),))


SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
"""The answer to a request of another kind."""


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_client_that_has_not_declared_it_is_not_asked_whatever_the_kernel_wants(version):
    sent = []
    asked = request(version, None, ElicitResult(action="accept"))
    result = await ToolQuestions().follow(asked, PARAMS, call_that_ends(sent), NO_LISTENER)
    assert result == Result((Text("done"),))
    assert "has not declared MCP's elicitation in this request" in sent[0].error


async def test_a_bridge_that_ends_cancels_what_is_parked():
    sent, asking = [], ToolQuestions()
    await asking.follow(request(elicitation={}), PARAMS, asking_call(sent), NO_LISTENER)
    asking.close()
    assert sent == [messages.Cancel(id=1, reason="The bridge was stopped.")]


# -- parked calls


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


async def test_a_call_whose_client_does_not_come_back_is_cancelled():
    sent, told = [], anyio.Event()

    def send(message):
        sent.append(message)
        told.set()

    parked = ParkedCalls(answer_limit=0)
    state = parked.park(RunningCall(1, send), ME, "top", {})
    with anyio.fail_after(60):
        await told.wait()
    assert sent == [messages.Cancel(id=1, reason=NO_ANSWER)]
    with pytest.raises(UnknownState):
        parked.take(state, ME, "top", {})
    assert len(parked) == 0


async def test_parked_calls_are_limited_and_a_close_cancels_them(call, sent):
    parked = ParkedCalls()
    for number in range(tool_questions.MAX_PARKED):
        parked.park(
            RunningCall(number, sent.append),
            Caller(name=f"caller {number}", is_user=True),
            "top",
            {},
        )
    with pytest.raises(CallError, match="all callers together can have 32 at a time"):
        parked.park(call, ME, "top", {})
    parked.close()
    assert len(sent) == tool_questions.MAX_PARKED
    assert len(parked) == 0


async def test_the_calls_of_one_caller_leave_room_for_those_of_others(call):
    parked = ParkedCalls()
    states = [parked.park(call, ME, "top", {}) for _ in range(tool_questions.MAX_CALLER_PARKED)]
    with pytest.raises(CallError, match="open questions: one caller can have 16 at a time"):
        parked.park(call, ME, "top", {})
    for _ in range(tool_questions.MAX_CALLER_PARKED):
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
