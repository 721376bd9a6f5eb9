"""What a client sees when a JupyterHub or Binder ends the server in the middle."""

import asyncio
import json
import threading
import time

import anyio
import pytest
from bridges import TOKEN
from live import TIMEOUT
from web_stand_ins import web_server

from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.relay import Relay
from mcp_notebook.bridge.connect.remote import Remote, open_http
from mcp_notebook.errors import ConnectionLost, RemoteError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]
JSON, EVENTS = {"Content-Type": "application/json"}, {"Content-Type": "text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTEN = "subscriptions/listen"
RETRY_LIMIT = 0.5


class Server:
    """A user's server behind a JupyterHub, which the test stops and starts."""

    def __init__(self):
        self.runs = True
        self.heard = []
        self.looks = 0
        """Questions whether it exists."""
        self.refused = 0
        """Requests while it did not run."""
        self.ends_with_call = False
        """Whether the next call ends it."""
        self.hangs = threading.Event()
        """Not set: calls are not answered."""
        self.hangs.set()
        self.sessions = []
        """The sessions that it knows."""
        self.progresses = []
        """The progress of each call."""
        self.closed = []
        """The requests while Jupyter had ended its kernel, if `is_closed`."""
        self.is_closed = False

    def answer(self, request):
        if not self.runs:
            return self.answer_stopped(request)
        if self.is_closed:
            self.closed.append(json.loads(request.body)["method"] if request.body else "")
            return 404, JSON, json.dumps({"error": "No open notebook is called 'rain'."})
        if request.method == "GET":
            self.looks += 1
            return 405, {}, ""
        message = json.loads(request.body)
        session = request.headers["Mcp-Session-Id"]
        if session is not None and session not in self.sessions:
            return 404, JSON, ""
        self.heard.append(message["method"])
        self.hangs.wait()
        if self.ends_with_call:
            self.runs = self.ends_with_call = False
            return None, {}, ""
        return self.answer_message(message, request)

    def answer_message(self, message, request):
        if message["method"] == LISTEN:
            note = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
            return 200, EVENTS, f"data: {json.dumps(note | {'params': {}})}\n\n"
        if message["method"] == "initialize":
            return self.open_session(message)
        if "id" not in message:
            return 202, {}, ""
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"path": request.path}}
        token = message["params"].get("_meta", {}).get("progressToken")
        progress = {"jsonrpc": "2.0", "method": "notifications/progress"}
        steps = [{"progressToken": token, "progress": value} for value in self.progresses]
        messages = [*(progress | {"params": step} for step in steps), answer]
        return 200, EVENTS, "".join(f"data: {json.dumps(each)}\n\n" for each in messages)

    def open_session(self, message):
        self.sessions = [f"session {self.heard.count('initialize')}"]
        result = {"protocolVersion": "2025-11-25", "capabilities": {}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return 200, JSON | {"Mcp-Session-Id": self.sessions[0]}, json.dumps(answer)

    def answer_stopped(self, request):
        """Answer as the JupyterHub does for a server that does not run."""
        self.refused += 1
        if request.method == "POST":
            return 403, {"Content-Type": "text/html"}, "<html>"
        return 302, {"Location": f"/hub{request.path}"}, ""


class Lines:
    """A client in this process."""

    def __init__(self):
        self.inbox = asyncio.Queue()
        self.outbox = asyncio.Queue()

    async def receive(self):
        return await self.inbox.get()

    async def send(self, message):
        self.send_soon(message)

    def send_soon(self, message):
        self.outbox.put_nowait(json.loads(message.body))

    def ask(self, number, method="tools/call", **meta):
        self.say(number, method, {"name": "top", "_meta": META | meta})

    def say(self, number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.inbox.put_nowait(json.dumps(message).encode())

    async def hear(self):
        with anyio.fail_after(TIMEOUT):
            return await self.outbox.get()


class Talk:
    """A relay between a client and the server, which starts the server again."""

    def __init__(self, server, url):
        self.server = server
        self.lines = Lines()
        self.remote = None
        self.url = url
        self.restarts = []
        self.failure = None
        self.path = "/user/ada/mcp"
        """Where the server is when it is started again."""
        self.steps = ["Starting the server ..."]
        self.start_takes = 0.0
        """Seconds."""

    async def restart(self, tell):
        self.restarts.append("restart")
        for step in self.steps:
            tell(step)
        await anyio.sleep(self.start_takes)
        if self.failure is not None:
            raise self.failure
        self.server.runs, self.server.is_closed = True, False
        self.remote.move(Remote(self.remote.http, self.url + self.path, self.remote.credentials))


@pytest.fixture
async def talk(request):
    """A relay that looks for the server of a running request at intervals of the parameter."""
    limits = {"retry_limit": RETRY_LIMIT, "look_interval": getattr(request, "param", 5.0)}
    server = Server()
    with web_server(server.answer) as url:
        talk = Talk(server, url)
        async with open_http() as http, anyio.create_task_group() as tasks:
            talk.remote = Remote(http, f"{url}/user/ada/mcp", Credentials(TOKEN, "the file t"))
            tasks.start_soon(Relay(talk.lines, talk.remote, 10_000, talk.restart, **limits).run)
            yield talk
            talk.lines.inbox.put_nowait(None)


async def test_the_next_call_starts_the_server_again_and_then_runs(talk, capsys):
    talk.server.runs = False
    talk.lines.ask(1, progressToken="p")
    step, answer = await talk.lines.hear(), await talk.lines.hear()
    params = {"progressToken": "p", "progress": -1, "message": "Starting the server ..."}
    assert (step["method"], step["params"]) == ("notifications/progress", params)
    assert answer["result"] == {"path": "/user/ada/mcp"}
    assert talk.server.heard == ["tools/call"], "it was not called twice"
    assert "Starting the server ..." in capsys.readouterr().err


async def test_the_progress_of_a_start_is_below_that_of_the_call(talk):
    """MCP: it must increase; that of our bridges begins at 0."""
    talk.server.runs = False
    talk.steps = ["Starting the server ...", "Code cell 1 of 2 ...", "Code cell 2 of 2 ..."]
    talk.server.progresses = [0.0, 1.0]
    talk.lines.ask(1, progressToken="p")
    heard = [(await talk.lines.hear())["params"] for _ in range(5)]
    assert [step.get("message") for step in heard] == [*talk.steps, None, None]
    values = [step["progress"] for step in heard]
    assert values == sorted(set(values))


async def test_calls_at_once_start_the_server_once(talk):
    talk.server.runs = False
    for number in range(5):
        talk.lines.ask(number)
    answers = [await talk.lines.hear() for _ in range(5)]
    assert all("result" in answer for answer in answers)
    assert talk.restarts == ["restart"]


async def test_a_call_that_arrives_while_the_server_comes_back_is_sent_again(talk):
    """The JupyterHub refuses it, and when it is asked why, the server runs."""
    refuse = talk.server.answer_stopped

    def come_back(request):
        talk.server.runs = True
        return refuse(request)

    talk.server.answer_stopped = come_back
    talk.server.runs = False
    talk.lines.ask(1)
    assert "result" in await talk.lines.hear()
    assert not talk.restarts


async def test_a_server_that_died_without_the_hub_knowing_it_is_started_again(talk):
    """The proxy still sends requests there."""
    talk.server.answer_stopped = lambda _request: (503, {}, "<html>")
    talk.server.runs = False
    talk.lines.ask(1)
    assert "result" in await talk.lines.hear()
    assert talk.restarts == ["restart"]


async def test_a_client_with_a_session_gets_its_answer_however_long_that_start_took(talk):
    """The server that was started does not know the session, which is then renewed."""
    talk.lines.say(1, "initialize", {})
    await talk.lines.hear()
    talk.server.answer_stopped = lambda _request: (503, {}, "<html>")
    talk.server.runs, talk.server.sessions = False, []
    talk.start_takes = 2 * RETRY_LIMIT
    talk.lines.say(2, "tools/call", {"name": "top"})
    assert (await talk.lines.hear())["result"] == {"path": "/user/ada/mcp"}
    assert talk.restarts == ["restart"]


async def test_a_server_whose_proxy_says_late_that_it_is_gone_is_started_again(talk):
    """A proxy may try for long to reach a machine that has gone."""
    talk.server.runs = False

    def refuse_late(_request):
        time.sleep(2 * RETRY_LIMIT)
        return 503, {}, "<html>"

    talk.server.answer_stopped = refuse_late
    talk.lines.ask(1)
    assert "result" in await talk.lines.hear()
    assert talk.restarts == ["restart"]


async def test_a_server_that_does_not_start_is_told_and_tried_again_by_the_next_call(talk):
    talk.server.runs = False
    talk.failure = RemoteError("There is no room.")
    for number in range(2):
        talk.lines.ask(number)
        assert (await talk.lines.hear())["error"]["message"] == "There is no room."
    assert talk.restarts == ["restart"] * 2


async def test_a_connection_that_is_lost_during_the_start_is_not_said_to_have_run_the_tool(talk):
    talk.server.runs = False
    talk.failure = ConnectionLost("The connection is lost.")
    talk.lines.ask(1)
    assert (await talk.lines.hear())["error"]["message"] == "The connection is lost."


@pytest.mark.parametrize("talk", [0.05], indirect=True)
async def test_a_call_whose_server_has_gone_without_a_word_ends_within_seconds(talk):
    """The proxy of a JupyterHub keeps its client's connection open."""
    talk.server.hangs.clear()
    talk.lines.ask(1)
    while not talk.server.heard:  # noqa: ASYNC110 - another thread
        await anyio.sleep(0.01)
    talk.server.runs = False
    try:
        with anyio.fail_after(5):
            error = (await talk.lines.hear())["error"]["message"]
    finally:
        talk.server.hangs.set()
    assert "is not running" in error
    assert "'top' may have run" in error


@pytest.mark.parametrize("talk", [0.01], indirect=True)
async def test_a_call_may_take_longer_than_its_server_is_left_alone(talk):
    talk.server.hangs.clear()
    talk.lines.ask(1)
    while talk.server.looks < 3:  # noqa: ASYNC110 - another thread
        await anyio.sleep(0.01)
    talk.server.hangs.set()
    assert "result" in await talk.lines.hear()
    assert not talk.restarts


async def test_a_list_that_was_lost_with_the_server_is_asked_for_again(talk):
    talk.server.ends_with_call = True
    talk.lines.ask(1, "tools/list")
    assert "result" in await talk.lines.hear()
    assert talk.restarts == ["restart"]


async def test_an_idle_client_is_told_once_within_seconds_and_nothing_is_started(talk, capsys):
    talk.lines.ask(1, LISTEN)
    await talk.lines.hear()
    talk.server.runs = False
    said = ""
    with anyio.fail_after(5):
        while "is not running" not in said or talk.server.refused < 6:
            await anyio.sleep(0.01)
            said += capsys.readouterr().err
    assert said.count("is not running") == 1
    assert not talk.restarts


async def test_an_idle_client_whose_notebook_was_closed_asks_for_it_with_its_next_request(talk):
    """Asking in between would run the notebook unasked, or keep its server from being stopped."""
    talk.lines.ask(1, LISTEN)
    await talk.lines.hear()
    for number in (2, 3):
        talk.server.closed, talk.server.is_closed = [], True
        while not talk.server.closed:  # noqa: ASYNC110 - another thread
            await anyio.sleep(0.01)
        await anyio.sleep(0.5)  # several of the usual pauses
        talk.lines.ask(number)
        assert "result" in await talk.lines.hear()
        assert talk.server.closed == [LISTEN, "tools/call"]
        heard = len(talk.server.heard)
        while LISTEN not in talk.server.heard[heard:]:  # noqa: ASYNC110 - another thread
            await anyio.sleep(0.01)
    assert talk.restarts == ["restart"] * 2


@pytest.mark.parametrize("talk", [0.01], indirect=True)
async def test_a_server_on_binder_that_has_closed_the_notebook_has_not_ended(talk):
    talk.remote.credentials = Credentials(TOKEN, "Binder", is_from_binder=True)
    talk.server.hangs.clear()
    talk.lines.ask(1)
    while not talk.server.heard:  # noqa: ASYNC110 - another thread
        await anyio.sleep(0.01)
    talk.server.is_closed = True
    try:
        with anyio.fail_after(TIMEOUT):
            while len(talk.server.closed) < 3:  # noqa: ASYNC110 - another thread
                await anyio.sleep(0.01)
    finally:
        talk.server.hangs.set()
    assert "result" in await talk.lines.hear()


async def test_a_server_on_binder_is_used_at_its_new_address(talk):
    talk.remote.credentials = Credentials(TOKEN, "Binder", is_from_binder=True)
    talk.path = "/user/rain-2/mcp"
    talk.server.runs = False
    for number in range(2):
        talk.lines.ask(number)
        assert (await talk.lines.hear())["result"] == {"path": "/user/rain-2/mcp"}
    assert talk.restarts == ["restart"]
