"""The questions of a call: first without a kernel, then in one, with the link spoken by hand."""

import asyncio
import os
import signal
import threading

import pytest
from live import TIMEOUT, Link, record_of, text_of

from mcp_notebook import CannotElicit, Context
from mcp_notebook.errors import Cancelled, InvalidAnswer
from mcp_notebook.kernel.tools.open_questions import (
    MAX_OPEN,
    Accepted,
    Elicitation,
    Elicitations,
    NotAccepted,
    Reply,
    Withdrawal,
    refuse_undeclared,
)
from mcp_notebook.wire import messages


class User:
    """Answers each question at once, on another thread."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.said = []
        self.waits = []
        self.elicitations = Elicitations(self.ask)
        self.elicitations.set_waiting_callback(self.waits.append)

    def ask(self, said):
        self.said.append(said)
        if isinstance(said, Elicitation) and self.replies:
            reply = self.replies.pop(0)
            threading.Thread(target=self.elicitations.answer, args=(said.number, reply)).start()


def context(user, **options):
    return Context("top", elicitations=user.elicitations, **options)


@pytest.mark.smoke
def test_an_answer_comes_back_as_a_value():
    user = User(Reply("accept", {"value": "EU"}), Reply("decline"), Reply("cancel", {"value": 1}))
    ctx = context(user)
    assert ctx.can_elicit
    answer = ctx.elicit("Which?", ["EU", "US"])
    assert answer == Accepted("EU")
    assert (answer.accepted, answer.data, answer.action) == (True, "EU", "accept")
    answer = ctx.elicit("Sure?")
    assert answer == NotAccepted("decline")
    assert (answer.accepted, answer.data) == (False, None)
    assert ctx.elicit("Really?", int).action == "cancel"
    assert [item.key for item in user.said] == ["question-1", "question-2", "question-3"]
    assert user.waits == [True, False] * 3


def test_a_coroutine_that_would_hold_up_its_loop_is_told():
    ctx = context(User())

    async def ask():
        ctx.elicit("Sure?")

    with pytest.raises(RuntimeError, match=r"await ctx\.elicit_async"):
        asyncio.run(ask())


def test_a_call_without_a_client_or_whose_client_cannot_ask_is_told_at_once():
    assert not Context().can_elicit
    with pytest.raises(CannotElicit, match=r"'Sure\?' cannot be asked: the call was made in the"):
        Context().elicit("Sure?")
    elicitations = Elicitations(None, refuse_undeclared("top"))
    with pytest.raises(CannotElicit, match=r"'top' has a question .* has not declared") as refused:
        Context("top", elicitations=elicitations).elicit("Sure?")
    assert refused.value.undeclared

    with pytest.raises(CannotElicit):
        asyncio.run(Context().elicit_async("Sure?"))


def test_a_call_that_shall_stop_waits_no_longer_and_takes_its_question_back():
    user = User()
    ctx = context(user, stopped=lambda: "No longer wanted." if user.said else None)
    with pytest.raises(Cancelled, match="No longer wanted"):
        ctx.elicit("Sure?")
    assert user.said == [Elicitation(1, "question-1", "Sure?", user.said[0].schema), Withdrawal(1)]
    assert user.waits == [True, False]
    user.elicitations.answer(1, Reply("accept"))  # comes too late, and means nothing
    with pytest.raises(Cancelled):
        ctx.elicit("And now?")
    assert len(user.said) == 2  # it is not even asked


def test_a_coroutine_that_is_cancelled_takes_its_question_back():
    user = User()

    async def ask():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(context(user).elicit_async("Sure?"), 0.01)

    asyncio.run(ask())
    assert user.said[-1] == Withdrawal(1)


def test_a_reason_why_there_is_no_answer_is_raised_where_it_was_asked():
    user = User(CannotElicit("The client is gone."), Reply("accept", {"value": "x"}))
    ctx = context(user)
    with pytest.raises(CannotElicit, match="gone"):
        ctx.elicit("Sure?")
    with pytest.raises(InvalidAnswer, match="value: got 'x'"):
        ctx.elicit("How many?", int)


def test_what_cannot_be_asked_for_is_not_sent():
    user = User()
    with pytest.raises(TypeError, match="elicit: the value is nested"):
        context(user).elicit("What?", dict)
    assert user.said == []


def test_a_message_and_a_key_are_texts_that_a_dialog_can_show():
    ctx = context(User())
    with pytest.raises(TypeError, match="the message must be a string, not a NoneType"):
        ctx.elicit(None)
    with pytest.raises(TypeError, match="the key must be a string, not a int"):
        ctx.elicit("Sure?", key=5)
    with pytest.raises(ValueError, match="the message has 10001 characters"):
        ctx.elicit("x" * 10_001)


def test_two_open_questions_have_two_keys():
    user = User()

    async def ask():
        ctx = context(user)
        first = asyncio.ensure_future(ctx.elicit_async("One?", key="k"))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="a question with the key 'k' has no answer yet"):
            await ctx.elicit_async("Two?", key="k")
        first.cancel()

    asyncio.run(ask())


def test_the_open_questions_of_a_call_are_limited():
    elicitations = User().elicitations
    for _ in range(MAX_OPEN):
        elicitations.ask("Sure?", {}, None)
    with pytest.raises(CannotElicit, match="50 questions that have no answer yet"):
        elicitations.ask("Sure?", {}, None)
    elicitations.answer(1, Reply("decline"))
    elicitations.ask("Sure?", {}, None)


def test_an_end_of_the_call_ends_its_questions_and_allows_no_new_ones():
    user = User()
    asked = threading.Event()
    user.elicitations._ask = lambda _: asked.set()
    outcome = []

    def ask():
        try:
            context(user).elicit("Sure?")
        except CannotElicit as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked.wait(60)
    user.elicitations.close(CannotElicit("over"))
    thread.join(60)
    assert [str(error) for error in outcome] == ["over"]
    assert not context(user).can_elicit
    with pytest.raises(CannotElicit, match="over"):
        context(user).elicit("Sure?")


TOOLS = """%%mcp_tool
import asyncio, threading, time
from mcp_notebook import Context

ended = threading.Event()

def ask(ctx: Context) -> str:
    "Ask on the main thread."
    ended.clear()
    try:
        return ctx.elicit("Sure?", str).data
    finally:
        ended.set()

async def ask_async(ctx: Context) -> str:
    "Ask in a coroutine."
    ended.clear()
    try:
        return (await ctx.elicit_async("Sure?", str)).data
    finally:
        ended.set()

async def leave(ctx: Context) -> str:
    "End before the answer is there."
    global left
    left = asyncio.ensure_future(ctx.elicit_async("Sure?", str))
    await asyncio.sleep(0)  # it asks now
    return "left"

def add(a: int) -> int:
    "Add."
    return a + 1
"""
THREAD = """%%mcp_tool --run thread
def ask_thread(ctx: Context) -> str:
    "Ask in a thread."
    ended.clear()
    try:
        return ctx.elicit("Sure?", str).data
    finally:
        ended.set()
"""
TIMED = """%%mcp_tool --timeout 0.3
def ask_timed(ctx: Context) -> str:
    "Ask with a limit."
    return ctx.elicit("Sure?", str).data
"""
WAYS = ("ask", "ask_async", "ask_thread")


@pytest.fixture(scope="module")
def live(shared_kernel):
    shared_kernel.ok(TOOLS)
    shared_kernel.ok(THREAD)
    shared_kernel.ok(TIMED)
    return shared_kernel


@pytest.fixture
def link(live):
    with Link(record_of(live)) as link:
        yield link


def start(link, tool, **options):
    """Call a tool, and return the call's id and its question."""
    call_id = next(link.ids)
    link.send(messages.Call(id=call_id, tool=tool, arguments={}, can_elicit=True, **options))
    return call_id, link.receive()


def answer(link, asked, **options):
    link.send(messages.Answer(id=asked.id, question=asked.question, **options))


def has_ended(live):
    # Not in the cell itself: a coroutine ends on the main thread's loop, which a cell holds.
    live.ok(f"assert await asyncio.to_thread(ended.wait, {TIMEOUT})")


@pytest.mark.parametrize("tool", WAYS)
def test_a_call_waits_for_its_answer_wherever_it_runs(live, link, tool):
    _, asked = start(link, tool)
    assert (asked.message, asked.key) == ("Sure?", "question-1")
    assert asked.form["properties"] == {"value": {"title": "Sure?", "type": "string"}}
    with Link(record_of(live)) as other:
        (doing,) = other.welcome.calls
        assert doing.doing.startswith("waiting for the user's answer for ")
        if tool != "ask":
            assert text_of(other.call("add", a=1)) == "2"  # what waits holds up nobody
    answer(link, asked, action="accept", content={"value": "yes"})
    assert text_of(link.result()) == "yes"
    answer(link, asked, action="accept", content={"value": "late"})
    assert text_of(link.call("add", a=2)) == "3"


@pytest.mark.parametrize("tool", WAYS)
def test_interrupt_ends_a_call_that_waits_for_an_answer(live, link, tool):
    start(link, tool)
    if tool != "ask":
        live.ok("pass")  # the main thread has gone on: it watches for interrupts now
    os.kill(live.pid, signal.SIGINT)
    assert "interrupted" in text_of(link.result())
    assert text_of(link.call("add", a=1)) == "2"


@pytest.mark.parametrize("tool", WAYS)
def test_a_call_whose_bridge_is_gone_waits_no_longer(live, tool):
    with Link(record_of(live)) as gone:
        start(gone, tool)
    has_ended(live)


def test_a_call_that_returns_with_an_open_question_is_answered(link):
    _, asked = start(link, "leave")
    assert text_of(link.result()) == "left"
    answer(link, asked, action="accept", content={})
    assert text_of(link.call("add", a=1)) == "2"


def test_a_client_that_cannot_ask_or_fails_to_is_told(link):
    link.start("ask")
    returned = link.result()
    assert "has not declared MCP's elicitation" in text_of(returned)
    _, asked = start(link, "ask")
    answer(link, asked, error="The dialog is broken.")
    assert text_of(link.result()) == "The dialog is broken."


def test_a_call_from_a_cell_has_no_user_to_ask(live):
    output = live.run("%mcp call ask")
    assert "only an MCP client has a user to ask" in output.text
