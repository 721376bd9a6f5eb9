"""How each HTTP request is answered, in both eras; the kernel is a stand-in."""

import http.client
import json
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from bridges import INITIALIZE, INVALID_PARAMS, INVALID_REQUEST, LIMIT, METHOD_NOT_FOUND, PING, PONG
from endpoints import MODERN, OWNERS, call, called, modern, served
from live import TIMEOUT

from mcp_notebook.bridge.access.caller import EVERYTHING, OWNER, SCOPE_KEY
from mcp_notebook.bridge.access.token_check import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.transports import http_exchange
from mcp_notebook.protocol.errors import (
    HEADER_MISMATCH,
    REQUEST_CANCELLED,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_notebook.protocol.versions import HANDSHAKE_VERSIONS
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])
LIST = {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/x"}
ANSWER = {"jsonrpc": "2.0", "id": 0, "result": {}}
JSON, EVENTS = "application/json", "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"


async def address(here, era, message):
    """Return a message as a client of an era sends it, and its headers."""
    if era == "modern":
        return modern(message)
    return message, {"Mcp-Session-Id": await here.open_session()}


def read_events(body):
    """Return the messages in a stream."""
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]


# -- what a request has to be ----------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (BOTH, 200),
        (f"{EVENTS};q=0.5 , {JSON};charset=utf-8", 200),
        (BOTH.upper(), 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        ("text/html, */*;q=0.1", 200),
        (f"application/*, {EVENTS}", 200),
        (JSON, 406),
        (EVENTS, 406),
        ("application/*", 406),
        ("text/*", 406),
        ("text/html", 406),
        (f"{JSON}x, {EVENTS}", 406),
        ("*", 406),
        ("", 406),
        (None, 406),
        (f"{'x/y, ' * 1_000}{BOTH}", 200),
    ],
)
async def test_a_client_has_to_accept_json_and_streams(home, era, accept, status):
    async with served(home) as here:
        message, headers = await address(here, era, LIST)
        answer = await here.ask(message, **headers, Accept=accept)
        assert answer.status == status
        if status == 406:
            assert answer.error["code"] == INVALID_REQUEST


@ERAS
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (JSON, 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/json;x", 200),
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("application/jsonl", 415),
        ("multipart/form-data", 415),
        ("", 415),
        (None, 415),
    ],
)
async def test_a_body_has_to_be_declared_as_json(home, era, kind, status):
    async with served(home) as here:
        message, headers = await address(here, era, LIST)
        answer = await here.ask(message, **headers, Content_Type=kind)
        assert answer.status == status


@ERAS
@pytest.mark.parametrize("is_told", [True, False], ids=["length", "chunks"])
async def test_a_body_can_be_as_long_as_the_limit(home, era, is_told):
    async with served(home, max_request_bytes=30_000) as here:
        message, headers = await address(here, era, LIST)
        body = json.dumps(message).encode()
        for size, status in [(30_000, 200), (30_001, 413)]:
            long = body + b" " * (size - len(body))
            answer = await here.send(long if is_told else [long[:9], long[9:]], headers=headers)
            assert answer.status == status
        assert "30,000 bytes" in answer.error["message"]


@pytest.mark.parametrize(
    ("era", "method"),
    [
        *(("handshake", method) for method in ("PUT", "PATCH", "OPTIONS", "TRACE")),
        *(("modern", method) for method in ("GET", "DELETE", "PUT", "OPTIONS")),
    ],
)
async def test_another_method_is_told_those_of_the_era(home, era, method):
    async with served(home) as here:
        version = MODERN if era == "modern" else HANDSHAKE_VERSIONS[-1]
        answer = await here.ask(method=method, Mcp_Protocol_Version=version)
        assert answer.status == 405
        assert answer.headers["Allow"] == ("POST" if era == "modern" else "GET, POST, DELETE")


@ERAS
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 9_000, b"null", b'{"a":"\xff"}'])
async def test_what_is_no_message_is_refused_and_the_session_stays(home, era, body):
    async with served(home) as here:
        message, headers = await address(here, era, LIST)
        answer = await here.send(body, headers=headers)
        assert answer.status == 400
        assert json.loads(answer.body)["id"] is None
        assert (await here.ask(message, **headers)).status == 200


# -- messages that get no answer -------------------------------------------------------------------


@pytest.mark.parametrize("message", [NOTICE, ANSWER, ANSWER | {"id": "of nobody"}])
async def test_notifications_and_answers_of_a_session_are_accepted(home, message):
    async with served(home) as here:
        session = await here.open_session()
        answer = await here.ask(message, Mcp_Session_Id=session)
        assert (answer.status, answer.body) == (202, b"")
        assert answer.headers["Mcp-Session-Id"] == session


async def test_without_sessions_notifications_are_accepted_and_answers_are_not(home):
    async with served(home) as here:
        answer = await here.ask(NOTICE, Mcp_Protocol_Version=MODERN)
        assert (answer.status, answer.body) == (202, b"")
        answer = await here.ask(ANSWER, Mcp_Protocol_Version=MODERN)
        assert (answer.status, answer.error["code"]) == (400, INVALID_REQUEST)


# -- sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, *HANDSHAKE_VERSIONS])
async def test_a_session_serves_any_of_its_versions_and_requests_without_one(home, version):
    async with served(home) as here:
        answer = await here.ask(PING, **await session_of(here), Mcp_Protocol_Version=version)
        assert (answer.status, json.loads(answer.body)) == (200, PONG)


async def session_of(here):
    return {"Mcp-Session-Id": await here.open_session()}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("POST", PING),
        ("POST", NOTICE),
        ("POST", ANSWER),
        ("POST", modern(LIST)[0]),
        ("GET", None),
        ("DELETE", None),
    ],
)
async def test_what_is_not_initialize_needs_a_session(home, method, message):
    async with served(home) as here:
        answer = await here.ask(message, method=method)
        assert (answer.status, answer.error["code"]) == (400, INVALID_REQUEST)
        assert "Missing session ID" in answer.error["message"]
        assert answer.headers["Mcp-Session-Id"] is None
        assert len(here.endpoint._sessions) == 0


@pytest.mark.parametrize("session", ["", "x", "\xe9", "a b", "x" * 1_000])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_that_nobody_has_is_not_found(home, method, session):
    async with served(home) as here:
        message = PING if method == "POST" else None
        answer = await here.ask(message, method=method, Mcp_Session_Id=session.encode("latin-1"))
        assert (answer.status, answer.error["message"]) == (404, "Session not found")


async def test_the_session_of_another_caller_is_as_one_that_nobody_has(home):
    store = TokenStore(home / "tokens.json")
    theirs = {"Authorization": f"Bearer {store.add('guest', EVERYTHING)}"}
    async with served(home, authenticators=(*OWNERS, NamedTokens(store))) as here:
        ours = await session_of(here)
        for method, message in [("POST", PING), ("GET", None), ("DELETE", None)]:
            answer = await here.ask(message, method=method, **ours, **theirs)
            assert (answer.status, answer.error["message"]) == (404, "Session not found")
        assert (await here.ask(PING, **ours)).status == 200


async def test_the_id_of_a_session_is_visible_ascii_and_cannot_be_guessed(home):
    async with served(home) as here:
        sessions = {await here.open_session() for _ in range(20)}
        assert len(sessions) == 20
        assert all(len(session) >= 32 and session.isalnum() for session in sessions)


async def test_a_session_ends_by_delete_and_with_it_its_stream_and_its_calls(home):
    async with served(home) as here:
        session, client = await here.open_call()
        stream = here.connect(f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}")
        answer = await here.ask(method="DELETE", Mcp_Session_Id=session)
        assert (answer.status, answer.body) == (200, b"")
        await here.kernel.cancelled.wait()
        for connection in (client, stream):
            with connection:
                said = await anyio.to_thread.run_sync(read_to_end, connection)
            assert b" 200 " in said
            assert read_events(said) == []
        for method in ("GET", "DELETE"):
            again = await here.ask(method=method, Mcp_Session_Id=session)
            assert again.status == 404
        assert len(here.endpoint._sessions) == 0


def read_to_end(connection):
    """Return what is said until the end of a stream."""
    connection.settimeout(LIMIT)
    said = b""
    while not said.endswith(b"0\r\n\r\n"):
        chunk = connection.recv(10_000)
        assert chunk, said
        said += chunk
    return said


async def test_a_session_has_one_stream_at_a_time(home):
    async with served(home) as here:
        session, first = await here.open_stream()
        with first:
            second = await here.ask(method="GET", Mcp_Session_Id=session)
            assert (second.status, second.error["code"]) == (409, INVALID_REQUEST)
        head = f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}\r\nLast-Event-ID: 7"
        while True:  # until it is noticed that the first one has gone
            with here.connect(head) as again:
                said = await anyio.to_thread.run_sync(again.recv, 1_000)
                if b" 409 " not in said:
                    break
        assert said.startswith(b"HTTP/1.1 200 ")
        assert f"mcp-session-id: {session}".encode() in said.lower()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_client_that_initializes_again_is_refused_and_stays_who_it_was(home, version):
    async with served(home) as here:
        headers = await session_of(here)
        params = INITIALIZE["params"] | {"protocolVersion": version}
        answer = await here.ask(INITIALIZE | {"params": params}, **headers)
        assert answer.headers["Mcp-Session-Id"] == headers["Mcp-Session-Id"]
        assert json.loads(answer.body)["error"]["code"] == INVALID_REQUEST
        tools = json.loads((await here.ask(LIST, **headers)).body)["result"]["tools"]
        assert any("annotations" in tool for tool in tools)
        assert len(here.endpoint._sessions) == 1


@pytest.mark.parametrize("wanted", ["2023-01-01", "2026-07-28", "2099-01-01", ""])
async def test_a_version_that_has_no_sessions_is_answered_with_the_latest_that_has(home, wanted):
    params = INITIALIZE["params"] | {"protocolVersion": wanted}
    async with served(home) as here:
        answer = await here.ask(INITIALIZE | {"params": params})
        assert json.loads(answer.body)["result"]["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": 1},
        {"capabilities": None},
        {"capabilities": {"elicitation": 1}},
        {"capabilities": {"experimental": {"a": 1}}},
        {"clientInfo": None},
        {"clientInfo": {"name": "c"}},
        {"_meta": {"progressToken": 1.5}},
    ],
)
async def test_an_initialize_that_is_not_one_opens_no_session(home, params):
    params = INITIALIZE["params"] | params if params else {}
    async with served(home) as here:
        answer = await here.ask(INITIALIZE | {"params": params})
        message = json.loads(answer.body)
        assert (message["id"], message["error"]["code"]) == ("hello", INVALID_PARAMS)
        assert len(here.endpoint._sessions) == 0


async def test_a_request_that_describes_its_client_is_not_for_a_session(home):
    async with served(home) as here:
        answer = await here.ask(modern(LIST)[0], **await session_of(here))
        assert json.loads(answer.body)["error"]["code"] == INVALID_REQUEST


@pytest.mark.parametrize(
    "late", [call(), NOTICE | {"method": "notifications/initialized"}], ids=["call", "initialized"]
)
async def test_what_comes_whole_only_after_its_session_has_ended_does_nothing(home, late):
    async with served(home) as here:
        session = await here.open_session()
        body = json.dumps(late).encode()
        head = f"POST /mcp HTTP/1.1\r\nMcp-Session-Id: {session}"
        with here.connect(head, body[:-1], length=len(body)) as client:
            while session in here.endpoint._sessions._idle:
                await anyio.lowlevel.checkpoint()
            assert (await here.ask(method="DELETE", Mcp_Session_Id=session)).status == 200
            client.sendall(body[-1:])
            said = await anyio.to_thread.run_sync(client.recv, 1_000)
        assert said.startswith(b"HTTP/1.1 404 ")
        assert not any(isinstance(item, messages.Call) for item in here.kernel.heard)
        assert here.endpoint._server.clients._sessions == {}


async def test_all_calls_of_a_session_end_with_it_also_those_with_the_same_id(home):
    async with served(home) as here:
        session = await here.open_session()
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(here.send_call, call(7), session)
            await called(here.kernel, 3)
            await here.ask(method="DELETE", Mcp_Session_Id=session)
        with anyio.fail_after(TIMEOUT):
            while count(here, messages.Cancel) < 3:
                await anyio.lowlevel.checkpoint()


def count(here, kind):
    return sum(isinstance(item, kind) for item in here.kernel.heard)


def scope_of(method, session):
    """Return the head of a request of a session, as the endpoint gets it."""
    headers = {"mcp-session-id": session, "accept": "*/*", "content-type": JSON}
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": "/mcp", "headers": fields, SCOPE_KEY: OWNER}


@asynccontextmanager
async def unread_stream(here, session):
    """Open the stream of a session, of which nothing is read, for the block."""
    is_full = anyio.Event()

    async def send(message):
        if message["type"] == "http.response.body":
            is_full.set()
            await anyio.sleep_forever()

    async def receive():
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.endpoint, scope_of("GET", session), receive, send)
        tasks.start_soon(here.endpoint._server.changes.broadcast, "resources", lambda _: True)
        await is_full.wait()
        yield
        tasks.cancel_scope.cancel()


async def test_a_client_that_does_not_read_its_stream_keeps_nothing_else_waiting(home):
    async with served(home) as here:
        session, other = await here.open_session(), await here.open_session()
        async with unread_stream(here, session):
            assert (await here.ask(PING, Mcp_Session_Id=session)).status == 200
            assert (await here.ask(PING, Mcp_Session_Id=other)).status == 200
            with anyio.fail_after(TIMEOUT):
                await here.endpoint._server.changes.broadcast("resources", lambda _: True)
            assert (await here.ask(method="DELETE", Mcp_Session_Id=session)).status == 200


# -- versions and headers since 2026-07-28 ---------------------------------------------------------


def in_version(version, message=LIST):
    """Return a request of a version, and its headers."""
    message, headers = modern(message)
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version
    return message, headers | {"Mcp-Protocol-Version": version}


@pytest.mark.parametrize("version", ["2027-01-01", "2026-07-27", "x", ""])
async def test_a_version_that_is_not_served_is_told_those_that_are(home, version):
    async with served(home) as here:
        message, headers = in_version(version)
        for each in (message, NOTICE):
            answer = await here.ask(each, **headers)
            assert (answer.status, answer.error["code"]) == (400, UNSUPPORTED_PROTOCOL_VERSION)
            assert answer.error["data"] == {"supported": [MODERN], "requested": version}
            assert json.loads(answer.body)["id"] == each.get("id")


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, "2027-01-01"])
async def test_a_version_that_differs_from_that_of_the_header_is_refused(home, version):
    async with served(home) as here:
        message, headers = in_version(version)
        answer = await here.ask(message, **headers | {"Mcp-Protocol-Version": MODERN})
        assert (answer.status, answer.error["code"]) == (400, HEADER_MISMATCH)


@pytest.mark.parametrize(
    "missing", ["protocolVersion", "clientCapabilities", None], ids=["version", "can", "all"]
)
async def test_a_request_that_does_not_describe_its_client_is_refused(home, missing):
    async with served(home) as here:
        message, headers = modern(LIST)
        meta = message["params"]["_meta"]
        if missing is None:
            del message["params"]
        else:
            del meta[f"io.modelcontextprotocol/{missing}"]
        answer = await here.ask(message, **headers)
        assert (answer.status, answer.error["code"]) == (400, INVALID_PARAMS)
        assert (missing or "clientCapabilities") in answer.error["message"]
        assert json.loads(answer.body)["id"] == "l"


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"},
    },
}
RIGHT = {"Mcp-Param-Region": "EU", "Mcp-Param-N": "7"}


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, True),
        ({"Mcp-Name": "=?base64?dG9w?="}, True),
        ({"Mcp-Param-N": "7.0"}, True),
        ({"Mcp-Param-Region": "=?base64?RVU=?="}, True),
        ({"Mcp-Param-Other": "x"}, True),
        ({"Mcp-Method": None}, False),
        ({"Mcp-Method": "tools/list"}, False),
        ({"Mcp-Method": "Tools/Call"}, False),
        ({"Mcp-Method": "=?base64?dG9vbHMvY2FsbA==?="}, False),  # a proxy would not know it
        ({"Mcp-Name": None}, False),
        ({"Mcp-Name": "other"}, False),
        ({"Mcp-Name": "=?base64?b3RoZXI=?="}, False),
        ({"Mcp-Name": "=?base64?dG9w"}, False),
        ({"Mcp-Name": b"=?base64?\xe9?="}, False),
        ({"Mcp-Param-Region": None}, False),
        ({"Mcp-Param-Region": "US"}, False),
        ({"Mcp-Param-Region": "=?base64?RVV=?="}, False),
        ({"Mcp-Param-Region": b"=?base64?\xe9?="}, False),
        ({"Mcp-Param-N": "7.5"}, False),
        ({"Mcp-Param-N": "8"}, False),
        ({"Mcp-Param-N": "7" * 5_000}, False),
    ],
)
async def test_headers_have_to_repeat_a_call(home, change, is_right):
    async with served(home, schema=SCHEMA) as here:
        message, headers = modern(call(arguments={"region": "EU", "n": 7}))
        headers |= RIGHT | change
        if is_right:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: here.ask(message, **headers))
                (running,) = await called(here.kernel)
                here.kernel.say(messages.Returned(id=running.id, content=[]))
        else:
            answer = await here.ask(message, **headers)
            assert (answer.status, answer.error["code"]) == (400, HEADER_MISMATCH)
            assert json.loads(answer.body)["id"] == 1
            assert not count(here, messages.Call)


async def test_a_header_without_its_argument_is_refused(home):
    async with served(home, schema=SCHEMA) as here:
        message, headers = modern(call())
        answer = await here.ask(message, **headers, Mcp_Param_N="7")
        assert (answer.status, answer.error["code"]) == (400, HEADER_MISMATCH)


@pytest.mark.parametrize("name", ["Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-N"])
async def test_a_header_that_comes_twice_is_refused(home, name):
    async with served(home, schema=SCHEMA) as here:
        message, headers = modern(call(arguments={"n": 7}))
        headers |= {"Mcp-Param-N": "7"}
        lines = [f"{key}: {value}" for key, value in headers.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, f"{name}: {headers[name]}"])
        with here.connect(head, json.dumps(message).encode()) as client:
            answer = http.client.HTTPResponse(client)
            await anyio.to_thread.run_sync(answer.begin)
            said = json.loads(await anyio.to_thread.run_sync(answer.read))
        assert (answer.status, said["error"]["code"]) == (400, HEADER_MISMATCH)


# -- the answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code", "status"),
    [
        ({"method": "nobody/knows"}, METHOD_NOT_FOUND, 404),
        ({"method": "tøøls/list"}, METHOD_NOT_FOUND, 404),
        ({"method": "tasks/list"}, METHOD_NOT_FOUND, 404),
        ({"method": "tools/list", "params": {"cursor": 1}}, INVALID_PARAMS, 400),
        ({"method": "resources/read", "params": {"uri": "x:y"}}, INVALID_PARAMS, 400),
    ],
)
async def test_an_error_has_a_status_only_since_2026_07_28(home, message, code, status):
    message = LIST | message
    async with served(home) as here:
        new, headers = modern(message)
        answer = await here.ask(new, **headers)
        assert (answer.status, answer.error["code"]) == (status, code)
        old = await here.ask(message, **await session_of(here))
        assert old.status == 200
        assert old.headers["Content-Type"] == JSON


@pytest.mark.parametrize(
    "method", ["ping", "logging/setLevel", "resources/subscribe", "initialize"]
)
async def test_what_only_sessions_have_is_not_found_without(home, method):
    async with served(home) as here:
        message, headers = modern(INITIALIZE | {"method": method})
        answer = await here.ask(message, **headers)
        assert (answer.status, answer.error["code"]) == (404, METHOD_NOT_FOUND)


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tasks/get"])
async def test_what_is_new_is_not_found_in_a_session(home, method):
    async with served(home) as here:
        answer = await here.ask(LIST | {"method": method}, **await session_of(here))
        assert (answer.status, answer.error["code"]) == (200, METHOD_NOT_FOUND)


@ERAS
@pytest.mark.parametrize("precedes", ["progress", "log", "nothing"])
async def test_an_answer_is_json_until_something_precedes_it(home, era, precedes):
    async with served(home) as here:
        message, headers = await address(here, era, call(progress=True))
        if precedes == "log" and era == "modern":
            message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
        answers = []

        async def ask_and_keep():
            answers.append(await here.ask(message, **headers))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_keep)
            (running,) = await called(here.kernel)
            if precedes == "progress":
                here.kernel.say(messages.Progress(id=running.id, progress=1, message="on"))
            elif precedes == "log":
                here.kernel.say(messages.Log(id=running.id, level="warning", text="Ouch"))
            here.kernel.say(messages.Returned(id=running.id, content=[]))
        (answer,) = answers
        assert answer.status == 200
        if precedes == "nothing":
            assert answer.headers["Content-Type"] == JSON
            assert "result" in json.loads(answer.body)
        else:
            assert answer.headers["Content-Type"].partition(";")[0] == EVENTS
            assert answer.headers["X-Accel-Buffering"] == "no"
            first, last = read_events(answer.body)
            method = {"progress": "notifications/progress", "log": "notifications/message"}
            assert first["method"] == method[precedes]
            assert last["id"] == 1
        assert answer.headers["Mcp-Session-Id"] == headers.get("Mcp-Session-Id")


@ERAS
async def test_a_silent_call_is_a_stream_of_pings_and_then_the_answer(home, era, monkeypatch):
    monkeypatch.setattr(http_exchange, "PING_INTERVAL", 0.05)
    async with served(home) as here:
        message, headers = await address(here, era, call())
        lines = [f"{key}: {value}" for key, value in headers.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines])
        with here.connect(head, json.dumps(message).encode()) as client:
            (running,) = await called(here.kernel)
            said = b""
            while said.count(b": ping\r\n\r\n") < 2:
                said += await anyio.to_thread.run_sync(client.recv, 10_000)
            here.kernel.say(messages.Returned(id=running.id, content=[]))
            said += await anyio.to_thread.run_sync(read_to_end, client)
        assert [event["id"] for event in read_events(said)] == [1]


async def test_a_client_that_disconnects_cancels_its_call_since_2026_07_28(home):
    async with served(home) as here:
        message, headers = modern(call())
        lines = [f"{key}: {value}" for key, value in headers.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines])
        with here.connect(head, json.dumps(message).encode()):
            await called(here.kernel)
        with anyio.fail_after(TIMEOUT):
            await here.kernel.cancelled.wait()


async def test_a_client_that_disconnects_does_not_cancel_the_call_of_its_session(home):
    async with served(home) as here:
        session = await here.open_session()
        parts, sent, has_gone = [json.dumps(call()).encode()], [], anyio.Event()

        async def receive():
            if parts:
                return {"type": "http.request", "body": parts.pop()}
            has_gone.set()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.endpoint, scope_of("POST", session), receive, send)
            (running,) = await called(here.kernel)
            await has_gone.wait()
            here.kernel.say(messages.Returned(id=running.id, content=[]))
        assert json.loads(sent[-1]["body"])["result"]["content"] == []
        assert not count(here, messages.Cancel)


@pytest.mark.parametrize("named", [1, "1"])
async def test_a_call_of_a_session_that_is_cancelled_is_answered_to_end_the_response(home, named):
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    async with served(home) as here:
        session = await here.open_session()
        other = await here.open_session()
        answers = []

        async def ask_and_keep():
            answers.append(await here.send_call(call(), session))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_keep)
            await called(here.kernel)
            notice = cancelled | {"params": {"requestId": named}}
            # Neither another session nor a client without one can cancel it.
            await here.ask(notice, Mcp_Session_Id=other)
            await here.ask(notice, Mcp_Protocol_Version=MODERN)
            for odd in (None, {}, {"requestId": True}, {"requestId": [1]}, {"requestId": 2}):
                await here.ask(cancelled | {"params": odd}, Mcp_Session_Id=session)
            assert not count(here, messages.Cancel)
            answer = await here.ask(notice, Mcp_Session_Id=session)
            assert answer.status == 202
        assert answers[0].error["code"] == REQUEST_CANCELLED
        await here.kernel.cancelled.wait()
