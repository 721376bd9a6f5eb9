"""Calls that are cancelled, left, doubled, limited or asked about end alike on both ways.

The tools wait until they are told to go on, so that each moment comes for sure; where the moment is
a matter of chance, all that both ways have to keep is compared.
"""

import asyncio
import json
import os
from contextlib import AsyncExitStack
from random import Random

import anyio
import pytest
from generated_requests import SESSIONS
from held_calls import (  # noqa: F401 - fixtures, too
    ask_who_holds,
    asking,
    both_pipes,
    check_alike,
    has_ended,
    holding_kernel,
    let_go,
    make_call,
    make_notification,
    on_both,
    protocol_era,
    take_lines,
    take_notes,
    until,
    wait_for_notes,
)
from live import record_of, soon
from short_way import both_sides

from mcp_notebook.bridge.server.consent.policy import ConsentPolicy
from mcp_notebook.bridge.transports.request_bodies import LARGE

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="pipes")]

MOMENTS = 30


async def test_a_client_that_hangs_up_at_any_moment_leaves_nothing_behind(kernel, era):
    random = Random(14)
    moments = [random.randrange(random.choice((10, 60, 300))) for _ in range(MOMENTS)]

    async def hang_up(side):
        for moment in moments:
            leaving = asyncio.Event()
            request = make_call(era, "hold", name=f"{era}-{moment}", meta={"progressToken": 1})
            if moment % 2:
                request = make_call(era, "echo", value=[moment] * 100)
            async with asking(side, request, leaving) as answers:
                for _ in range(moment):
                    await anyio.lowlevel.checkpoint()
                leaving.set()
                if era == "handshake" and not moment % 2:
                    await let_go(side, f"{era}-{moment}")
            ((status, _, content),) = answers
            assert status in (None, 200), answers
            assert status is None or content, answers
        await has_ended(side)
        kinds = [each[0] for each in side.watch.take()]
        assert kinds.count("CallStart") == kinds.count("CallEnd")
        assert kinds.count("CallStart") + kinds.count("CallRefusal") <= MOMENTS
        return await ask_who_holds(side), await side.ask(
            make_call(era, "echo", value="still there")
        )

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        found = [await hang_up(side) for side in sides]
    check_alike(found)
    assert found[0][0] == []


@pytest.mark.parametrize("number", [7, "7"])
async def test_a_cancelled_call_of_a_session(kernel, number):
    async def cancel(side, name):
        async with asking(side, make_call("handshake", "hold", 7, name=name)) as answers:
            await until(side, name)
            for other in (8, "8", 7.5, None, [7]):
                notification = make_notification("notifications/cancelled", requestId=other)
                assert (await side.ask(notification))[0] in (202, 400)
            assert not answers
            elsewhere = make_notification("notifications/cancelled", "third", requestId=number)
            assert (await side.ask(elsewhere))[0] == 202
            assert name in await ask_who_holds(side)
            await side.ask(make_notification("notifications/cancelled", requestId=number))
        await has_ended(side)
        return answers, take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike(await on_both(sides, cancel, "cancelled"))


async def test_a_session_that_ends_while_its_call_runs(kernel):
    async def end(side, name):
        request = make_call("handshake", "hold", 7, session="second", name=name)
        async with asking(side, request) as answers:
            await until(side, name)
            ending = make_call("handshake", "", session="second")
            ending.method, ending.body = "DELETE", b""
            ended = await side.ask(ending)
        await has_ended(side)
        return answers, ended, take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike(await on_both(sides, end, "session"))


@pytest.mark.parametrize("era", ["modern"])  # of a session, the SDK leaves one without an answer
async def test_two_requests_with_the_same_id(kernel, era):
    async def double(side, name):
        async with asking(side, make_call(era, "hold", 7, name=name)) as first:
            await until(side, name)
            second = await side.ask(make_call(era, "echo", 7, value="between"))
            await let_go(side, name)
        await has_ended(side)
        return str((first, second)).replace(name, "NAME"), take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike(await on_both(sides, double, f"{era}-twice"))


async def test_progress_and_log_messages_come_before_the_answer(kernel, era):
    level = {"io.modelcontextprotocol/logLevel": "debug"}

    async def tell(side, name):
        answers = []
        for meta in ({"progressToken": "t"}, {"progressToken": 0}, {}, level):
            word = f"{name}-{len(answers)}"
            async with asking(side, make_call(era, "tell", name=word, meta=meta)) as answer:
                await until(side, word)
                await anyio.sleep(0.3)  # updates of progress that come at once become one
                await let_go(side, word)
            ((status, headers, content),) = answer
            if isinstance(content, list):  # progress and log messages come independently
                *before, last, end = map(str, content)
                content = [*sorted(before), last, end]
            answers.append(str((status, headers, content)).replace(name, "NAME"))
        await has_ended(side)
        return answers, take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike(await on_both(sides, tell, f"{era}-tells"))


@pytest.mark.parametrize(
    "limits",
    [
        {"max_caller_calls": 2},
        {"max_request_bytes": 2**16},
    ],
    ids=lambda limits: next(iter(limits)),
)
async def test_what_is_beyond_a_limit_is_refused(kernel, era, limits):
    arguments = [1, [[[1]]], list(range(9)), "x" * 2**16, "x" * LARGE, [[["x" * LARGE]]]]

    async def ask(side, name):
        answers = []
        async with AsyncExitStack() as stack:
            if "max_caller_calls" in limits:
                for number in range(2):
                    request = make_call(era, "hold", number, name=name)
                    await stack.enter_async_context(asking(side, request))
                await wait_for_notes(side, "CallStart", 2)
            for number, value in enumerate(arguments, 10):
                answers.append(await side.ask(make_call(era, "echo", number, value=value)))
            if len(side.watch.noted) > 2 and side.server._room._running._counts:
                side.server.close()
        await has_ended(side)
        return str(answers).replace(name, "NAME"), take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home, **limits) as sides:
        check_alike(await on_both(sides, ask, era))


async def test_too_many_requests_are_refused_before_they_are_read(kernel, era):
    most = len(SESSIONS) + 1

    async def ask(side):
        return [await side.ask(make_call(era, "echo", number)) for number in range(5)]

    limits = {"max_caller_calls_per_minute": most}  # one session is the reader's
    async with both_sides([record_of(kernel)], kernel.home, **limits) as sides:
        first, second = [await ask(side) for side in sides]
        check_alike([side.watch.take() for side in sides])
    assert first == second
    assert first[-1][0] == 429


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}], ids=["silent", "asking"])
async def test_a_call_that_needs_consent(kernel, era, capabilities):
    session = "asking" if capabilities else "usual"
    request = make_call(era, "drop", year=2012, session=session, capabilities=capabilities)

    async def ask(side, _name):
        answer = await side.ask(request)
        return str(answer), take_notes(side)

    consent = ConsentPolicy(timeout=0.2)
    async with both_sides([record_of(kernel)], kernel.home, consent=consent) as sides:
        check_alike(await on_both(sides, ask, ""))


async def test_a_bridge_that_stops_answers_its_calls_and_starts_no_more(kernel, era):
    async def stop(side, name):
        async with asking(side, make_call(era, "hold", name=name)) as answers:
            await until(side, name)
            side.server.close()
        later = await side.ask(make_call(era, "echo", 2))
        return answers, later, take_notes(side, name)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike(await on_both(sides, stop, f"{era}-stops"))


async def test_calls_keep_their_session_from_expiring(kernel):
    async with both_sides([record_of(kernel)], kernel.home) as sides:
        for side in sides:
            session = side.endpoint._sessions._server_instances[side.sessions["usual"]]
            before = session.idle_scope.deadline
            async with asking(side, make_call("handshake", "hold", name=f"{side.way}-idle")):
                await until(side, f"{side.way}-idle")
                assert session.idle_scope.deadline == float("inf")
                await let_go(side, f"{side.way}-idle")
            assert before < session.idle_scope.deadline < float("inf")


async def test_the_same_clients_are_known(kernel, era):
    async def find_clients(side):
        await side.ask(make_call(era, "echo", client="visitor"))
        expected = len(SESSIONS) + (era == "modern")
        await soon(lambda: sum(each.number for each in side.server._client_counts) >= expected)
        return sorted((each.name, each.number) for each in side.server._client_counts)

    async with both_sides([record_of(kernel)], kernel.home) as sides:
        check_alike([await find_clients(side) for side in sides])


# -- over stdio ------------------------------------------------------------------------------------


def cancelled(number):
    params = {"requestId": number, "reason": "No."}
    return json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    ).encode()


async def test_a_call_cancelled_over_stdio_at_any_moment(kernel, era):
    random = Random(15)
    moments = [random.randrange(random.choice((10, 60, 300))) for _ in range(MOMENTS)]

    async def cancel(side, pipes):
        lines = []
        for number, moment in enumerate(moments):
            tool = "echo" if moment % 2 else "hold"
            arguments = {"value": 1} if moment % 2 else {"name": f"{side.way}-{era}-{number}"}
            await pipes.send(make_call(era, tool, number, **arguments).body)
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            await pipes.send(cancelled(number))
        await pipes.send(make_call(era, "echo", "last").body)
        lines = await take_lines(pipes, "last")
        await has_ended(side)
        kinds = [each[0] for each in side.watch.take()]
        assert kinds.count("CallStart") == kinds.count("CallEnd")
        ids = [json.loads(line)["id"] for line in lines]
        assert len(ids) == len(set(ids))
        assert {number for number in ids if number != "last" and moments[number] % 2 == 0} <= {
            json.loads(line)["id"] for line in lines if "error" in line or '"isError": true' in line
        }

    async with both_pipes(kernel, era) as clients:
        for each in clients:
            await cancel(*each)


async def test_two_requests_with_the_same_id_over_stdio(kernel, era):
    async def double(side, pipes, name):
        await pipes.send(make_call(era, "hold", 7, name=name).body)
        await wait_for_notes(side, "CallStart")
        await pipes.send(make_call(era, "echo", 7, value="between").body)
        await wait_for_notes(side, "CallEnd")
        await pipes.send(cancelled(7))
        await pipes.send(make_call(era, "let_go", 8, name=name).body)
        await wait_for_notes(side, "CallEnd", 3)
        await pipes.send(make_call(era, "echo", "last").body)
        lines = await take_lines(pipes, "last")
        return str(sorted(lines)).replace(name, "NAME"), sorted(take_notes(side, name))

    async with both_pipes(kernel, era) as clients:
        check_alike(
            [await double(*each, f"{era}-stdio-twice-{each[0].way[:3]}") for each in clients]
        )


@pytest.mark.parametrize(
    "moment",
    [0, 3, 40, *(pytest.param(moment, marks=pytest.mark.slow) for moment in (1, 2, 5, 10, 20))],
)
async def test_a_client_that_leaves_at_any_moment_gets_each_answer_once(kernel, era, moment):
    async def leave(side, pipes):
        for number in range(5):
            await pipes.send(make_call(era, "echo", number, value=number).body)
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        pipes.close()
        with anyio.fail_after(30):
            lines = [json.loads(line) for line in await pipes.receive_rest()]
        await has_ended(side)
        return sorted(line["id"] for line in lines)

    async with both_pipes(kernel, era) as clients:
        check_alike([await leave(*each) for each in clients])
