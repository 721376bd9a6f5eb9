"""A tool asks the client's user, seen by the official client in both eras."""

import json
import os

import anyio
import mcp_types as types
import pytest
from clients import text_of
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import asyncio, os, threading
from typing import Literal
from pydantic import BaseModel, Field
from mcp_notebook import CannotElicit, Context

runs = []
stopped = threading.Event()
was_asked, taken_back = asyncio.Event(), asyncio.Event()
heard = os.open("heard", os.O_RDWR)

async def _take_back(question):
    was_asked.clear()
    taken_back.clear()
    task = asyncio.ensure_future(question)
    await was_asked.wait()
    task.cancel()
    await asyncio.wait([task])
    taken_back.set()

class Trip(BaseModel):
    to: Literal["Rome", "Oslo"]
    days: int = Field(7, ge=1, le=30)

def book(ctx: Context) -> str:
    "Ask for a whole form."
    runs.append("book")
    print("asks")
    answer = ctx.elicit("Where to?", Trip)
    ctx.progress(1, 2, "answered")
    if not answer.accepted:
        return answer.action
    os.read(heard, 1)
    return f"{answer.data.to} for {answer.data.days} days, {type(answer.data).__name__}"

def rounds(n: int, ctx: Context) -> list[str]:
    "Ask again and again."
    runs.append("rounds")
    return [ctx.elicit(f"Word {i}?", str).data for i in range(n)]

async def both(ctx: Context) -> list[str]:
    "Ask two things at once."
    runs.append("both")
    answers = await asyncio.gather(
        ctx.elicit_async("Which?", ["a", "b"], key="which"),
        ctx.elicit_async("How many?", int, key="many"),
    )
    return [str(answer.data) for answer in answers]

async def hasty(ctx: Context) -> str:
    "Ask something else as soon as the user has been asked."
    await _take_back(ctx.elicit_async("Slow?", key="slow"))
    return (await ctx.elicit_async("Quick?", str, key="quick")).data

async def confused(ctx: Context) -> str:
    "Ask something else under the same key."
    await _take_back(ctx.elicit_async("Delete a.txt?", key="confirm"))
    return (await ctx.elicit_async("Delete everything?", key="confirm")).action

def loaded(ctx: Context) -> str:
    "Say how far it is, then ask."
    ctx.progress(1, 3, "loaded")
    return ctx.elicit("Go on?").action

def careful(ctx: Context) -> str:
    "Do without an answer."
    if ctx.can_elicit:
        return "can"
    try:
        ctx.elicit("Sure?")
    except CannotElicit:
        return "did without"

def blocked(ctx: Context) -> str:
    "Wait in the main thread."
    stopped.clear()
    try:
        return ctx.elicit("Go on?").action
    finally:
        stopped.set()
"""

FAVOURITE = """%%mcp_tool --read-only
def favourite(ctx: Context) -> str:
    "Ask, if that can be."
    return str(ctx.elicit("Favourite?", str).data) if ctx.can_elicit else "nobody to ask"
"""
WAS_ASKED = "was_asked.set()"
UNTIL_TAKEN_BACK = "await asyncio.wait_for(taken_back.wait(), 60)"


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    os.mkfifo(shared_kernel.home / "heard")
    for cell in (TOOLS, FAVOURITE):
        shared_kernel.ok(cell)
    return shared_kernel


class User:
    """Answers what the client asks."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    async def __call__(self, _context, params):
        self.asked.append(params)
        answer = self.answers[params.message]
        if callable(answer):
            answer = await answer()
        if isinstance(answer, str):
            return types.ElicitResult(action=answer)
        return types.ElicitResult(action="accept", content=answer)


@pytest.mark.smoke
async def test_a_tool_asks_its_user_and_goes_on_with_the_answer(kernel, connect, era, transport):
    user = User({"Where to?": {"to": "Oslo", "days": 3}})
    async with connect(era, transport, elicitation_callback=user) as client:
        await client.list_tools()
        await anyio.to_thread.run_sync(kernel.ok, "runs.clear()")
        await _one_question(client, user, kernel)
        await _many_questions(client, user)
        # None of these ran twice.
        runs = ["book", "book", "book", "rounds", "both"]
        await anyio.to_thread.run_sync(kernel.ok, f"assert runs == {runs}, runs")
        await _a_question_that_is_taken_back(client, user, era, kernel)
        if transport == "stdio":
            await _a_cancelled_call(client, user)
    if transport == "stdio":  # the connection is gone, and with it the call
        await anyio.to_thread.run_sync(kernel.ok, "assert stopped.wait(60)")


async def _one_question(client, user, kernel):
    told = []

    async def progress(_value, _total, message):
        told.append(message)
        if message == "answered":
            (kernel.home / "heard").write_bytes(b"!")

    result = await client.call_tool("book", {}, progress_callback=progress)
    assert text_of(result).splitlines() == ["asks", "Oslo for 3 days, Trip"]
    assert "answered" in told
    (asked,) = user.asked
    assert asked.mode == "form"
    assert asked.requested_schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "enum": ["Rome", "Oslo"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 30, "default": 7},
        },
        "required": ["to"],
    }
    user.answers["Where to?"] = "decline"
    assert "decline" in text_of(await client.call_tool("book", {}))
    user.answers["Where to?"] = {"to": "Mars"}
    result = await client.call_tool("book", {})
    assert result.is_error
    assert "to: got 'Mars'" in text_of(result)


async def _many_questions(client, user):
    user.answers |= {f"Word {i}?": {"value": f"w{i}"} for i in range(3)}
    user.answers |= {"Which?": {"value": "b"}, "How many?": {"value": 4}}
    assert json.loads(text_of(await client.call_tool("rounds", {"n": 3}))) == ["w0", "w1", "w2"]
    assert json.loads(text_of(await client.call_tool("both", {}))) == ["b", "4"]


async def _a_question_that_is_taken_back(client, user, era, kernel):
    asked, gone = anyio.Event(), anyio.Event()

    async def slowly():
        asked.set()
        try:
            await anyio.to_thread.run_sync(kernel.ok, WAS_ASKED)
            if era == "legacy":
                await anyio.sleep_forever()
            else:  # here the client is told nothing before it answers
                await anyio.to_thread.run_sync(kernel.ok, UNTIL_TAKEN_BACK)
        finally:
            gone.set()
        return {}

    user.answers |= {"Slow?": slowly, "Quick?": {"value": "q"}}
    assert text_of(await client.call_tool("hasty", {})) == "q"
    assert asked.is_set()
    with anyio.fail_after(60):
        await gone.wait()  # in the older eras the client is told to close its dialog


async def _a_cancelled_call(client, user):
    asked = anyio.Event()

    async def never():
        asked.set()
        await anyio.sleep_forever()

    user.answers |= {"Go on?": never}
    assert text_of(await client.call_tool("careful", {})) == "can"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "blocked", {})
        with anyio.fail_after(60):
            await asked.wait()
        tasks.cancel_scope.cancel()


async def test_a_client_that_cannot_ask_is_told_and_a_tool_may_do_without(
    kernel, connect, era, transport
):
    async with connect(era, transport) as client:
        await client.list_tools()
        assert text_of(await client.call_tool("careful", {})) == "did without"
        if era == "legacy":
            result = await client.call_tool("blocked", {})
            assert result.is_error
            assert "has not declared MCP's elicitation" in text_of(result)
            return
        with pytest.raises(MCPError, match="has not declared MCP's elicitation") as caught:
            await client.call_tool("blocked", {})
        assert caught.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
        assert caught.value.data == {"requiredCapabilities": {"elicitation": {}}}


async def test_a_state_fits_the_call_that_it_was_given_for_and_fits_once(kernel, connect):
    user = User({})
    async with connect("auto", "http", elicitation_callback=user) as client:
        await client.list_tools()

        async def call(name, arguments, responses=None, state=None):
            return await client.session.call_tool(
                name,
                arguments,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )

        first = await call("rounds", {"n": 1})
        assert isinstance(first, types.InputRequiredResult)
        (key,) = first.input_requests
        answer = {key: types.ElicitResult(action="accept", content={"value": "x"})}
        for name, arguments, state in [
            ("rounds", {"n": 1}, first.request_state + "x"),
            ("rounds", {"n": 2}, first.request_state),
            ("book", {}, first.request_state),
        ]:
            with pytest.raises(MCPError, match="requestState") as caught:
                await call(name, arguments, answer, state)
            assert caught.value.code == types.INVALID_PARAMS
        again = await call("rounds", {"n": 1}, {"other": answer[key]}, first.request_state)
        assert list(again.input_requests) == [key]
        assert again.request_state != first.request_state
        last = await call("rounds", {"n": 1}, answer, again.request_state)
        assert json.loads(text_of(last)) == ["x"]
        with pytest.raises(MCPError, match="requestState"):
            await call("rounds", {"n": 1}, answer, again.request_state)
        # An answer that comes with the call is used when its question comes.
        given = await call("rounds", {"n": 1}, answer)
        assert json.loads(text_of(given)) == ["x"]


async def test_the_answer_to_one_question_does_not_answer_another(kernel, connect):
    async def late():
        await anyio.to_thread.run_sync(kernel.ok, f"{WAS_ASKED}\n{UNTIL_TAKEN_BACK}")
        return {}

    user = User({"Delete a.txt?": late, "Delete everything?": "decline"})
    async with connect("auto", "http", elicitation_callback=user) as client:
        await client.list_tools()
        assert text_of(await client.call_tool("confused", {})) == "decline"


async def test_what_a_user_was_asked_for_is_given_to_nobody_else(kernel, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        assert text_of(await client.call_tool("favourite", {})) == "nobody to ask"
    for word in ("blue", "red"):
        user = User({"Favourite?": {"value": word}})
        async with connect("auto", "http", elicitation_callback=user) as client:
            await client.list_tools()
            assert text_of(await client.call_tool("favourite", {})) == word
