"""The session of a client that stays connected: its states, its requests, and our questions."""

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import TIMEOUT
from mcp_types.methods import parse_server_notification, parse_server_request

from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.protocol.elicitation import ELICIT, ElicitForm
from mcp_notebook.protocol.errors import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    ProtocolError,
)
from mcp_notebook.protocol.messages import Answer, Request
from mcp_notebook.protocol.methods import METHODS
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE as VERSION
from mcp_notebook.protocol.versions import PROTOCOL_VERSION_KEY

FORM = ElicitForm("Sure?", {"type": "object", "properties": {}})
ACCEPTED = {"action": "accept", "content": {}}


class Sent:
    """Takes what a client is sent; each message is one of MCP's."""

    def __init__(self):
        self._messages, self._received = anyio.create_memory_object_stream(10)

    async def __call__(self, message):
        message = json.loads(message)
        parse = parse_server_request if "id" in message else parse_server_notification
        parse(message["method"], VERSION, message.get("params"))
        self._messages.send_nowait(message)

    async def next(self):
        with anyio.fail_after(TIMEOUT):
            return await self._received.receive()

    def close(self):
        """Return how many messages are left."""
        with self._messages, self._received:
            return self._received.statistics().current_buffer_used


@pytest.fixture
def sent():
    sent = Sent()
    yield sent
    assert sent.close() == 0


@pytest.fixture
def session(sent):
    return ClientSession(sent)


# -- its states

MODERN_PARAMS = {"_meta": {PROTOCOL_VERSION_KEY: "2026-07-28"}}


def test_before_the_handshake_a_client_may_initialize_and_ping_and_nothing_else(session):
    for method in ("initialize", "ping"):
        session.check(Request(1, method))
    for method in METHODS.keys() - {"initialize", "ping"}:
        if METHODS[method].since <= VERSION:  # these are unknown to the session anyway
            with pytest.raises(ProtocolError, match="Send `initialize` before") as caught:
                session.check(Request(1, method))
            assert caught.value.code == INVALID_PARAMS


def test_after_the_handshake_a_client_may_send_all_other_requests(session):
    session.open(read_profile(VERSION, None, {}, session))
    for method in METHODS.keys() - {"initialize"}:
        session.check(Request(1, method))
    with pytest.raises(ProtocolError, match="first request of a session") as caught:
        session.check(Request(1, "initialize"))
    assert caught.value.code == INVALID_REQUEST


def test_a_session_takes_no_request_of_the_other_era(session):
    for _ in range(2):
        with pytest.raises(ProtocolError, match="began with `initialize`") as caught:
            session.check(Request(1, "tools/list", MODERN_PARAMS))
        assert caught.value.code == INVALID_REQUEST
        session.open(read_profile(VERSION, None, {}, session))


# -- its requests


def test_a_request_that_its_client_cancels_is_ended(session):
    ended = []
    with session.run(7, ended.append):
        session.cancel({"requestId": 7, "reason": "no need"})
    assert ended == ["cancelled"]


@pytest.mark.parametrize(("one", "other"), [(7, "7"), ("7", 7), ("-3", -3)])
def test_an_id_is_the_same_as_a_number_and_as_a_text(session, one, other):
    ended = []
    with session.run(one, ended.append):
        session.cancel({"requestId": other})
    assert ended == ["cancelled"]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text("7a")
VALUES = st.recursive(LEAVES, lambda items: st.lists(items) | st.dictionaries(st.text("a"), items))


@given(st.none() | st.fixed_dictionaries({}, optional={"requestId": VALUES, "reason": VALUES}))
def test_a_cancellation_of_nothing_changes_nothing(params):
    session, ended = ClientSession(None), []
    with session.run("a request", ended.append):
        session.cancel(params)
    assert ended == []


def test_a_request_that_was_answered_is_not_ended(session):
    ended = []
    with session.run(7, ended.append):
        pass
    session.cancel({"requestId": 7})
    session.end()
    assert ended == []


def test_a_request_with_the_id_of_one_that_runs_does_not_replace_it(session):
    first, second = [], []
    with session.run(7, first.append):
        with session.run(7, second.append):
            pass
        session.cancel({"requestId": 7})
    assert (first, second) == (["cancelled"], [])


def test_the_end_of_a_session_ends_all_of_its_requests(session):
    ended = []
    with (
        session.run(1, ended.append),
        session.run(1, ended.append),
        session.run("two", ended.append),
    ):
        session.end()
    assert ended == ["session ended"] * 3


def test_who_asked_for_it_is_told_of_the_end_once_also_when_it_comes_late(session):
    told = []
    session.call_at_end(told.append, "in time")
    assert told == []
    session.end()
    session.end()
    assert told == ["in time"]
    session.call_at_end(told.append, "late")
    assert told == ["in time", "late"]


# -- our messages


@pytest.mark.anyio
async def test_a_notification_is_sent(session, sent):
    await session.notify("notifications/tools/list_changed")
    assert await sent.next() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    await session.notify("notifications/resources/updated", {"uri": "a:b"})
    assert (await sent.next())["params"] == {"uri": "a:b"}


class Questions:
    """Asks a session's client, each time in a task."""

    def __init__(self, session, send, tasks):
        self._session, self._send, self._tasks = session, send, tasks
        self.outcomes = {}

    async def _ask(self, name, scope):
        with scope:
            try:
                self.outcomes[name] = await self._session.ask(ELICIT, FORM.params, self._send)
            except ProtocolError as error:
                self.outcomes[name] = error

    def ask(self, name):
        """Begin to ask, and return how to stop it."""
        scope = anyio.CancelScope()
        self._tasks.start_soon(self._ask, name, scope)
        return scope


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [int, str])
async def test_each_question_gets_its_own_answer(session, sent, kind):
    async with anyio.create_task_group() as tasks:
        questions = Questions(session, sent, tasks)
        ids = []
        for name in ("first", "second"):
            questions.ask(name)
            asked = await sent.next()
            assert asked["params"] == FORM.params
            ids.append(asked["id"])
        assert len({*ids}) == 2
        for number, text in ((ids[1], "b"), (ids[0], "a")):
            session.take_answer(Answer(kind(number), ACCEPTED | {"content": {"text": text}}))
    said = {name: result["content"]["text"] for name, result in questions.outcomes.items()}
    assert said == {"first": "a", "second": "b"}


@pytest.mark.anyio
async def test_an_answer_to_no_open_question_is_ignored(session, sent):
    session.take_answer(Answer(0, ACCEPTED))
    async with anyio.create_task_group() as tasks:
        questions = Questions(session, sent, tasks)
        questions.ask("it")
        number = (await sent.next())["id"]
        for odd in (None, "", "x", number + 1, 10**30):
            session.take_answer(Answer(odd, {"action": "cancel"}))
        session.take_answer(Answer(number, ACCEPTED))
        session.take_answer(Answer(number, {"action": "cancel"}))  # too late
    session.take_answer(Answer(number, {"action": "cancel"}))
    assert questions.outcomes == {"it": ACCEPTED}


@pytest.mark.anyio
async def test_an_error_of_the_client_is_the_error_of_the_question(session, sent):
    async with anyio.create_task_group() as tasks:
        questions = Questions(session, sent, tasks)
        questions.ask("it")
        error = {"code": -1, "message": "no dialog", "data": {"why": "closed"}}
        session.take_answer(Answer((await sent.next())["id"], error=error))
    assert questions.outcomes["it"].form == error


@pytest.mark.anyio
async def test_a_question_that_nobody_waits_for_is_withdrawn(session, sent):
    async with anyio.create_task_group() as tasks:
        questions = Questions(session, sent, tasks)
        asking = questions.ask("it")
        number = (await sent.next())["id"]
        asking.cancel()
        told = await sent.next()
        assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", number)
    session.take_answer(Answer(number, ACCEPTED))
    assert questions.outcomes == {}


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_client_that_takes_no_news_keeps_nobody_waiting_for_long(session):
    was_asked = anyio.Event()

    async def send(_message):
        if was_asked.is_set():
            await anyio.sleep_forever()
        was_asked.set()

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            asking = Questions(session, send, tasks).ask("it")
            await was_asked.wait()
            asking.cancel()


@pytest.mark.anyio
async def test_a_client_that_leaves_answers_no_open_question_and_is_asked_no_more(session, sent):
    async with anyio.create_task_group() as tasks:
        questions = Questions(session, sent, tasks)
        questions.ask("open")
        number = (await sent.next())["id"]
        session.end()
        session.take_answer(Answer(number, ACCEPTED))
        questions.ask("late")
    assert {error.code for error in questions.outcomes.values()} == {CONNECTION_CLOSED}
    assert questions.outcomes.keys() == {"open", "late"}


@pytest.mark.anyio
async def test_a_question_that_cannot_be_sent_is_no_open_one(session):
    async def send(_message):
        raise OSError("the pipe is closed")

    with pytest.raises(OSError, match="closed"):
        await session.ask(ELICIT, FORM.params, send)
    session.take_answer(Answer(0, ACCEPTED))
    session.end()
