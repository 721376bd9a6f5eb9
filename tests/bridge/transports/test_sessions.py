"""Which session makes room for a new client when there are too many; the kernel is a stand-in."""

import copy
import gc
import json
import tracemalloc

import anyio
import pytest
from bridges import INITIALIZE, PING, ask
from endpoints import OWNERS, called, served

from mcp_notebook.bridge.access.caller import EVERYTHING, OWNER
from mcp_notebook.bridge.access.token_check import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.transports.sessions import MAX_MISSED
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


async def status(here, session):
    return (await here.ask(PING, Mcp_Session_Id=session)).status


async def test_the_session_that_was_idle_for_longest_makes_room_for_a_new_one(home):
    async with served(home, sessions={"most": 5}) as here:
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
        home, authenticators=(*OWNERS, NamedTokens(store)), sessions={"most": 4}, max_caller_calls=2
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
    async with served(home, authenticators=authenticators, sessions={"most": 2}) as here:
        first, second = [await here.open_session() for _ in range(2)]
        assert (await here.ask(PING, Mcp_Session_Id=first, **theirs)).status == 404
        await here.open_session()
        assert await status(here, first) == 404
        assert await status(here, second) == 200


async def test_a_caller_whose_sessions_are_all_in_use_is_refused_another(home):
    store = TokenStore(home / "tokens.json")
    token = store.add("guest", EVERYTHING)
    theirs = {"Authorization": f"Bearer {token}"}
    authenticators = (*OWNERS, NamedTokens(store))
    async with served(home, authenticators=authenticators, max_caller_calls=1) as here:
        listening = (await here.ask(INITIALIZE, **theirs)).headers["Mcp-Session-Id"]
        with here.connect(
            f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {listening}", token=token
        ) as stream:
            assert b" 200 " in await anyio.to_thread.run_sync(stream.recv, 1_000)
            assert (await here.ask(INITIALIZE, **theirs)).status == 503
            assert (await here.ask(PING, Mcp_Session_Id=listening, **theirs)).status == 200
            ours = [await here.open_session() for _ in range(3)]  # the user has no such share
            assert [await status(here, session) for session in ours] == [200] * 3


async def test_guests_leave_sessions_to_the_user_and_make_room_among_their_own(home):
    store = TokenStore(home / "tokens.json")
    guests = [{"Authorization": f"Bearer {store.add(f'guest-{n}', EVERYTHING)}"} for n in range(4)]
    authenticators = (*OWNERS, NamedTokens(store))
    async with served(
        home, authenticators=authenticators, sessions={"most": 8}, max_caller_calls=4
    ) as here:
        ours = [await here.open_session() for _ in range(2)]
        for guest in guests * 4:
            assert (await here.ask(INITIALIZE, **guest)).status == 200
        assert [await status(here, session) for session in ours] == [200] * 2


async def test_a_new_client_is_refused_only_while_all_sessions_are_in_use(home):
    async with served(home, sessions={"most": 2}) as here:
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


# -- what a session keeps of what its client says --------------------------------------------------

PLACES = [
    ("capabilities", "experimental", "x"),
    ("capabilities", "extensions", "com.example/x"),
    ("capabilities", "elicitation", "form"),
    ("capabilities", "sampling", "x"),
    ("capabilities", "x"),
    ("clientInfo", "icons"),
    ("clientInfo", "name"),
    ("clientInfo", "x"),
    ("_meta", "x"),
    ("x",),
]
"""Where an `initialize` can be large."""
QUICK = (("capabilities", "experimental", "x"), ("clientInfo", "name"))
"""Where the memory is measured by default: that takes a second each."""


def initialize_with(place, size):
    """Return an `initialize` that has so many bytes, nearly all of them at one place.

    They are empty objects wherever MCP allows these: nothing takes more memory.
    """
    message = copy.deepcopy(INITIALIZE)
    here = message["params"]
    for name in place[:-1]:
        here = here.setdefault(name, {})

    def fill(count):
        if place[-1] == "icons":
            here["icons"] = [{"src": "https://x"} for _ in range(count // 20)]
        elif place[-1] == "name":
            here["name"] = "n" * count
        else:
            here[place[-1]] = {"a": [{} for _ in range(count // 4)]}

    fill(size)
    excess = len(json.dumps(message)) - size
    fill(size - excess)
    return message


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        pytest.param(place, marks=() if place in QUICK else pytest.mark.slow, id="/".join(place))
        for place in PLACES
    ],
)
async def test_a_session_keeps_little_of_what_its_client_says_of_itself(home, place):
    sessions = 10
    async with served(home) as here:

        def open_sessions(message):
            body = json.dumps(message)
            assert {ask(here.url, body=body).status for _ in range(sessions)} == {200}

        async def grow(message):
            before, _ = tracemalloc.get_traced_memory()
            await anyio.to_thread.run_sync(open_sessions, message)
            assert await status(here, "none") == 404  # nothing is left of the last request then
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before

        tracemalloc.start(1)
        try:
            await grow(INITIALIZE)
            small = await grow(INITIALIZE)
            large = await grow(initialize_with(place, 16_000))
        finally:
            tracemalloc.stop()
    assert large - small < sessions * 4_000


@pytest.mark.parametrize("place", PLACES, ids="/".join)
async def test_a_client_that_says_too_much_of_itself_gets_no_session(home, place):
    large = initialize_with(place, 30_000)
    async with served(home) as here:
        answer = await here.ask(large)
        assert answer.status == 413
        assert "16,384 bytes" in answer.error["message"]
        assert answer.headers["Mcp-Session-Id"] is None
        session = await here.open_session()
        again = await here.ask(large, Mcp_Session_Id=session)
        assert b"first request of a session" in again.body
        assert await status(here, session) == 200
        assert len(here.endpoint._sessions) == 1


@pytest.mark.parametrize("kind", ["request", "notification", "answer"])
async def test_a_session_does_not_keep_its_last_message(home, kind):
    nothing = {"x": [{} for _ in range(50_000)]}
    message = {
        "request": PING | {"params": {"_meta": nothing}},
        "notification": {"jsonrpc": "2.0", "method": "notifications/x", "params": nothing},
        "answer": {"jsonrpc": "2.0", "id": 1, "result": nothing},
    }[kind]
    async with served(home) as here:
        session = await here.open_session()
        assert await status(here, session) == 200
        tracemalloc.start(1)
        try:
            before, _ = tracemalloc.get_traced_memory()
            assert (await here.ask(message, Mcp_Session_Id=session)).status in (200, 202)
            assert await status(here, "none") == 404  # nothing else is left of the request then
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] - before < 200_000
        finally:
            tracemalloc.stop()
        assert await status(here, session) == 200


async def test_a_long_body_without_a_session_is_refused_before_it_comes(home):
    async with served(home) as here:
        with here.connect("POST /mcp HTTP/1.1", length=2**25) as client:
            assert b" 413 " in await anyio.to_thread.run_sync(client.recv, 1_000)


async def test_a_notice_without_a_stream_is_sent_when_the_client_opens_one(home):
    changed = ["tools", "prompts", "tools"]
    async with served(home) as here:
        session_id = await here.open_session()
        session = here.endpoint._sessions.find(session_id, OWNER)
        for name in changed:
            await session.client.notify(f"notifications/{name}/list_changed")
        for _ in range(2):
            with here.connect(f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session_id}") as stream:
                said = b""
                while b"resources" not in said:
                    said += await anyio.to_thread.run_sync(stream.recv, 10_000)
                    if b"\r\n\r\n" in said and session.stream is not None:
                        await session.client.notify("notifications/resources/list_changed")
            counts = [said.count(b"tools/list_changed"), said.count(b"prompts/list_changed")]
            assert counts == ([1, 1] if changed else [0, 0])
            changed = []
            while session.stream is not None:  # noqa: ASYNC110 - a disconnect is seen later
                await anyio.sleep(0.01)


async def test_few_notices_wait_for_a_stream(home):
    async with served(home) as here:
        session = here.endpoint._sessions.find(await here.open_session(), OWNER)
        for number in range(2 * MAX_MISSED):
            await session.client.notify("notifications/resources/updated", {"uri": f"d://{number}"})
        assert len(session._missed) == MAX_MISSED
