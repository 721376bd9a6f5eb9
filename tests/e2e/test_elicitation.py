"""A tool asks the client's user, seen by the official client in both eras."""

import json

import anyio
import mcp_types as types
import pytest
from clients import ERAS, TRANSPORTS, connected, text_of
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import asyncio, threading, time
from typing import Literal
from pydantic import BaseModel, Field
from mcp_notebook import CannotElicit, Context

runs = []
stopped = threading.Event()

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
    "Wait a moment only, then ask something else."
    try:
        await asyncio.wait_for(ctx.elicit_async("Slow?", key="slow"), 0.2)
    except TimeoutError:
        return (await ctx.elicit_async("Quick?", str, key="quick")).data
    return "early"

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


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    shared_kernel.ok(TOOLS)
    return shared_kernel


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


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


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_tool_asks_its_user_and_goes_on_with_the_answer(kernel, era, transport):
    user = User({"Where to?": {"to": "Oslo", "days": 3}})
    told = []

    async def progress(value, _total, message):
        told.append((value, message))

    async with connected(kernel.home, era, transport, elicitation_callback=user) as client:
        await client.list_tools()
        await anyio.to_thread.run_sync(kernel.ok, "runs.clear()")
        result = await client.call_tool("book", {}, progress_callback=progress)
        assert text_of(result).splitlines()[-1] == "Oslo for 3 days, Trip"
        assert "asks" in text_of(result)
        (asked,) = user.asked
        assert asked.requested_schema["properties"]["to"] == {
            "type": "string",
            "enum": ["Rome", "Oslo"],
        }
        assert asked.requested_schema["required"] == ["to"]
        assert asked.mode == "form"
        await anyio.to_thread.run_sync(kernel.ok, "assert runs == ['book'], runs")
        user.answers["Where to?"] = "decline"
        assert text_of(await client.call_tool("book", {})).endswith("decline")
        user.answers["Where to?"] = {"to": "Mars"}
        result = await client.call_tool("book", {})
        assert result.is_error
        assert "does not fit" in text_of(result)


async def test_questions_one_after_the_other_and_at_once(kernel, era):
    user = User({f"Word {i}?": {"value": f"w{i}"} for i in range(3)})
    user.answers |= {"Which?": {"value": "b"}, "How many?": {"value": 4}}
    async with connected(kernel.home, era, "stdio", elicitation_callback=user) as client:
        await client.list_tools()
        await anyio.to_thread.run_sync(kernel.ok, "runs.clear()")
        result = await client.call_tool("rounds", {"n": 3})
        assert json.loads(text_of(result)) == ["w0", "w1", "w2"]
        result = await client.call_tool("both", {})
        assert json.loads(text_of(result)) == ["b", "4"]
        await anyio.to_thread.run_sync(kernel.ok, "assert runs == ['rounds', 'both'], runs")


async def test_a_question_that_is_taken_back_is_not_answered(kernel, era):
    asked, gone = anyio.Event(), anyio.Event()

    async def slowly():
        asked.set()
        if era == "legacy":
            try:
                await anyio.sleep_forever()
            finally:
                gone.set()
        with anyio.move_on_after(0.5):
            await anyio.sleep_forever()
        return {}

    user = User({"Slow?": slowly, "Quick?": {"value": "q"}})
    async with connected(kernel.home, era, "stdio", elicitation_callback=user) as client:
        await client.list_tools()
        assert text_of(await client.call_tool("hasty", {})) == "q"
        assert asked.is_set()
        if era == "legacy":
            with anyio.fail_after(5):
                await gone.wait()  # the client's dialog is closed


async def test_a_client_that_cannot_ask_is_told_and_a_tool_may_do_without(kernel, era):
    async with connected(kernel.home, era, "stdio") as client:
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


async def test_a_call_that_is_cancelled_while_its_user_thinks_stops(kernel, era):
    asked = anyio.Event()

    async def never():
        asked.set()
        await anyio.sleep_forever()

    user = User({"Go on?": never})
    async with connected(kernel.home, era, "stdio", elicitation_callback=user) as client:
        await client.list_tools()
        assert text_of(await client.call_tool("careful", {})) == "can"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "blocked", {})
            with anyio.fail_after(10):
                await asked.wait()
            tasks.cancel_scope.cancel()
    # The connection is gone, and with it the call.
    await anyio.to_thread.run_sync(kernel.ok, "assert stopped.wait(10)")


async def test_a_state_fits_the_call_that_it_was_given_for_and_fits_once(kernel):
    user = User({})
    async with connected(kernel.home, "auto", "stdio", elicitation_callback=user) as client:
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
