"""Which session makes room for a new client when there are too many; the kernel is a stand-in."""

import json

import anyio
import pytest
from bridges import INITIALIZE, PING
from endpoints import OWNERS, called, served
from live import TIMEOUT
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCNotification

from mcp_notebook.bridge.access.caller import EVERYTHING
from mcp_notebook.bridge.access.named_tokens import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.transports.sessions import _RequestStream
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


async def status(here, session):
    return (await here.ask(PING, Mcp_Session_Id=session)).status


async def test_the_session_that_was_idle_for_longest_makes_room_for_a_new_one(home):
    async with served(home, max_sessions=5) as here:
        listening, stream = await here.open_stream()
        calling, client = await here.open_call()
        with stream, client:
            used, idle, ended = [await here.open_session() for _ in range(3)]
            assert await status(here, used) == 200
            assert (await here.ask(method="DELETE", Mcp_Session_Id=ended)).status == 200
            first = await here.open_session()
            assert await status(here, used) == 200
            second = await here.open_session()
            assert await status(here, idle) == 404
            for session in (listening, calling, used, first, second):
                assert await status(here, session) == 200
            assert not any(isinstance(item, messages.Cancel) for item in here.kernel.heard)


async def test_a_caller_with_its_share_of_sessions_makes_room_among_its_own(home):
    store = TokenStore(home / "tokens.json")
    theirs = {"Authorization": f"Bearer {store.add('guest', EVERYTHING)}"}
    async with served(
        home, authenticators=(*OWNERS, NamedTokens(store)), max_sessions=4, max_caller_sessions=2
    ) as here:
        ours = await here.open_session()
        *_, first, second, third = [
            (await here.ask(INITIALIZE, **theirs)).headers["Mcp-Session-Id"] for _ in range(9)
        ]
        assert await status(here, ours) == 200
        for session, answer in [(first, 404), (second, 200), (third, 200)]:
            assert (await here.ask(PING, Mcp_Session_Id=session, **theirs)).status == answer


async def test_a_caller_does_not_keep_the_session_of_another_in_use(home):
    store = TokenStore(home / "tokens.json")
    theirs = {"Authorization": f"Bearer {store.add('guest', EVERYTHING)}"}
    authenticators = (*OWNERS, NamedTokens(store))
    async with served(home, authenticators=authenticators, max_sessions=2) as here:
        first, second = [await here.open_session() for _ in range(2)]
        assert (await here.ask(PING, Mcp_Session_Id=first, **theirs)).status == 404
        await here.open_session()
        assert await status(here, first) == 404
        assert await status(here, second) == 200


async def test_a_caller_whose_sessions_are_all_in_use_is_refused_another(home):
    async with served(home, max_caller_sessions=1) as here:
        listening, stream = await here.open_stream()
        with stream:
            assert (await here.ask(INITIALIZE)).status == 503
            assert await status(here, listening) == 200


async def test_a_new_client_is_refused_only_while_all_sessions_are_in_use(home):
    async with served(home, max_sessions=2) as here:
        listening, stream = await here.open_stream()
        calling, client = await here.open_call()
        client.close()  # the call runs on
        with stream:
            answer = await here.ask(INITIALIZE)
            assert (answer.status, answer.error["message"]) == (503, "Too many open sessions")
            (running,) = await called(here.kernel)
            here.kernel.say(messages.Returned(id=running.id, content=[]))
            while (await here.ask(INITIALIZE)).status == 503:
                pass
            assert await status(here, calling) == 404
            assert await status(here, listening) == 200


async def test_a_client_that_does_not_read_keeps_nothing_else_of_its_session_waiting():
    sent, reads = [], anyio.Event()

    async def send(message):
        await reads.wait()
        sent.append(json.loads(message)["method"])
        if sent == ["0"]:
            raise OSError("of one message only")

    stream = _RequestStream(send)
    with anyio.fail_after(TIMEOUT):
        for number in range(10):
            notification = JSONRPCNotification(jsonrpc="2.0", method=str(number))
            await stream.send(EventMessage(notification))
        reads.set()
        await stream.flush()
    stream.close()
    assert sent == [str(number) for number in range(10)]


async def test_a_sender_held_up_by_a_full_queue_is_released_when_its_request_ends():
    stream = _RequestStream(lambda _: anyio.sleep_forever())
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                notification = JSONRPCNotification(jsonrpc="2.0", method="m")
                tasks.start_soon(stream.send, EventMessage(notification))
            await anyio.wait_all_tasks_blocked()
            stream.close()
