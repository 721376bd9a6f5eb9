"""Clients with a session over HTTP are asked the same questions on the short way as by the SDK."""

import asyncio
import os

import pytest
from held_calls import (
    asking,
    check_alike,
    has_ended,
    holding_kernel,  # noqa: F401 - a fixture
    let_go,
    make_call,
    on_both,
    take_notes,
    until,
)
from live import record_of, soon
from short_way import both_sides

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="pipes")]

ANSWERS = 3
TOOLS = """%%mcp_tool
from dataclasses import dataclass

@dataclass
class Row:
    name: str
    size: float = 0

async def ask_twice(ctx: Context) -> str:
    "Ask the user for two rows at once, and then for another one."
    keys = ["first", "second"]
    rows = await asyncio.gather(*(ctx.elicit_async(f"The {key}?", Row, key=key) for key in keys))
    return str([*rows, await ctx.elicit_async("The last?", Row, key="last")])

async def ask_and_hold(name: str, ctx: Context) -> str:
    "Ask the user for a row, until it is let go."
    question = asyncio.ensure_future(ctx.elicit_async("Which row?", Row, key="row"))
    try:
        held = await hold(name)
    finally:
        question.cancel()
    return held
"""


@pytest.fixture(scope="module", name="asking_kernel")
def kernel_that_asks(kernel):
    """A kernel with tools that ask."""
    kernel.ok(TOOLS)
    return kernel


def make_question(name, number=7):
    """Return a call that asks and holds."""
    return make_call("handshake", "ask_and_hold", number, session="asking", name=name)


async def until_asked(side, request):
    """Wait until the client has a question of a request."""
    await soon(
        lambda: any(
            exchange._request is request and b"elicitation/create" in exchange.body
            for exchange in side.open_exchanges
        )
    )


async def compare(kernel, act, name):
    """Do the same on both sides, whose clients do not answer questions."""
    async with both_sides([record_of(kernel)], kernel.home) as sides:
        for side in sides:
            side.answers_questions = False
        check_alike(await on_both(sides, act, name))


async def test_the_user_is_asked_and_answers(asking_kernel):
    request = make_call("handshake", "ask_twice", "r-7", session="asking")

    async def ask(side, _name):
        return await side.ask(request), take_notes(side)

    async with both_sides([record_of(asking_kernel)], asking_kernel.home) as sides:
        before = [side.passed_on for side in sides]
        first, second = await on_both(sides, ask, "")
        passed_on = [side.passed_on - count for side, count in zip(sides, before, strict=True)]
    assert first == second
    assert str(first).count("Row(name=") == str(first).count("elicitation/create") == ANSWERS
    assert sorted(passed_on) == [ANSWERS, ANSWERS + 1]


async def test_a_question_that_is_withdrawn_is_cancelled_before_the_answer(asking_kernel):
    async def withdraw(side, name):
        request = make_question(name)
        async with asking(side, request) as answers:
            await until_asked(side, request)
            await let_go(side, name)
        await has_ended(side)
        ((_, _, events),) = answers
        assert ["elicitation/create" in str(event) for event in events[:2]] == [True, False]
        assert "notifications/cancelled" in str(events[1])
        return str(answers).replace(name, "NAME"), take_notes(side, name)

    await compare(asking_kernel, withdraw, "withdrawn")


async def test_a_client_that_hangs_up_while_it_is_asked(asking_kernel):
    async def hang_up(side, name):
        request, leaving = make_question(name), asyncio.Event()
        async with asking(side, request, leaving) as answers:
            await until_asked(side, request)
            await until(side, name)
            leaving.set()
            await let_go(side, name)
        await has_ended(side)
        return str(answers).replace(name, "NAME"), take_notes(side, name)

    await compare(asking_kernel, hang_up, "leaves")


async def test_nothing_is_left_of_a_request_in_its_session(asking_kernel):
    async with both_sides([record_of(asking_kernel)], asking_kernel.home) as sides:
        for side in sides:
            answer = await side.ask(make_call("handshake", "echo", 7, session="asking", value=1))
            assert "result" in str(answer)
            session = side.endpoint._sessions._server_instances[side.sessions["asking"]]
            assert "7" not in session._request_streams
