"""What a session does with servers that end streams or forget it."""

import json

import anyio
import pytest
from live import TIMEOUT
from web_stand_ins import web_server

from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.messages import make_message
from mcp_notebook.bridge.connect.remote import Remote, ask, open_http
from mcp_notebook.bridge.connect.session import Session
from mcp_notebook.errors import RemoteError

pytestmark = pytest.mark.anyio
JSON, EVENTS = {"Content-Type": "application/json"}, {"Content-Type": "text/event-stream"}
INITIALIZE = make_message({"id": 0, "method": "initialize", "params": {}})
CALL = make_message({"id": 7, "method": "tools/call", "params": {"name": "top"}})
CHANGED = "notifications/tools/list_changed"


def event(content):
    return f"data: {json.dumps({'jsonrpc': '2.0', **content})}\n\n"


class Server:
    """A server of the handshake era, which a test lets forget its sessions."""

    def __init__(self):
        self.session = "s1"
        self.version = "2025-06-18"
        self.tells_changes = True
        self.heard = []
        self.streams = []
        """What the streams outside of requests bring, one after the other."""
        self.is_closed = False
        """Whether Jupyter has ended the kernel of its notebook."""

    def answer(self, request):
        if request.method == "GET":
            if request.headers["Mcp-Session-Id"] != self.session:
                return 404, {}, ""
            return 200, EVENTS, self.streams.pop(0) if self.streams else ""
        content = json.loads(request.body)
        self.heard.append(content["method"])
        if content["method"] == "initialize":
            return self.open_session(content)
        if request.headers["Mcp-Session-Id"] != self.session:
            return 404, {}, ""
        if "id" not in content:
            return 202, {}, ""
        return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": content["id"], "result": {}})

    def open_session(self, content):
        if self.is_closed:
            return 404, JSON, json.dumps({"error": "No open notebook is called 'rain'."})
        capabilities = {"tools": {"listChanged": self.tells_changes}, "prompts": {}}
        result = {"protocolVersion": self.version, "capabilities": capabilities}
        answer = {"jsonrpc": "2.0", "id": content["id"], "result": result}
        return 200, JSON | {"Mcp-Session-Id": self.session}, json.dumps(answer)


class Link:
    """A session with a server."""

    def __init__(self, http, url):
        self.got = []
        self.news = anyio.Event()
        self.remote = Remote(http, url, Credentials())
        self.session = Session(self.remote, self.send)

    async def send(self, message):
        self.got.append(message.method)
        self.news.set()
        self.news = anyio.Event()

    async def open(self):
        self.session.note_opened(INITIALIZE, *await ask(self.remote, INITIALIZE, {}))

    async def wait(self, count):
        with anyio.fail_after(TIMEOUT):
            while len(self.got) < count:
                await self.news.wait()


@pytest.fixture
def server():
    return Server()


@pytest.fixture
async def link(server):
    with web_server(server.answer) as url:
        async with open_http() as http:
            link = Link(http, f"{url}/mcp")
            await link.open()
            yield link


async def test_a_new_session_is_told_what_the_old_one_was(server, link):
    for method, params in (
        ("logging/setLevel", {"level": "info"}),
        ("resources/subscribe", {"uri": "a:1"}),
        ("resources/subscribe", {"uri": "a:2"}),
        ("resources/unsubscribe", {"uri": "a:1"}),
    ):
        link.session.note_request(make_message({"id": 1, "method": method, "params": params}))
    server.session = "s2"
    link.session.note_lost(link.session.number)
    server.heard.clear()
    await link.session.renew()
    assert server.heard == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
    ]
    assert link.session.headers["mcp-session-id"] == "s2"
    assert link.got == [CHANGED]
    await link.session.renew()
    assert len(server.heard) == 4


async def test_a_client_is_told_of_changes_only_if_the_server_declares_that_it_does(server, link):
    server.session, server.tells_changes = "s2", False
    link.session.note_lost(link.session.number)
    await link.session.renew()
    assert link.session.headers["mcp-session-id"] == "s2"
    assert link.got == []


async def test_a_server_of_another_version_cannot_take_the_session(server, link):
    server.version = "2024-11-05"
    link.session.note_lost(link.session.number)
    with pytest.raises(RemoteError, match=r"2025-06-18.*Restart the client"):
        await link.session.renew()


async def test_a_stream_that_ends_is_opened_again_and_the_client_told_of_what_it_missed(
    server, link
):
    server.streams = [event({"method": "notifications/a"}), event({"method": "notifications/b"})]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.session.hear)
        await link.wait(3)
        tasks.cancel_scope.cancel()
    assert link.got[:3] == ["notifications/a", CHANGED, "notifications/b"]


async def test_a_stream_notices_that_the_session_is_lost(server, link):
    server.session = "s2"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.session.hear)
        await link.wait(1)
        tasks.cancel_scope.cancel()
    assert link.got[0] == CHANGED
    assert link.session.headers["mcp-session-id"] == "s2"


async def test_a_stream_of_a_closed_notebook_waits_until_a_request_has_opened_it(server, link):
    """On a JupyterHub, asking in between would keep the server from being stopped."""
    link.remote.url = link.remote.url.replace("/mcp", "/user/ada/mcp")
    server.session, server.is_closed = "s2", True
    server.heard.clear()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.session.hear)
        while not server.heard:  # noqa: ASYNC110 - another thread
            await anyio.sleep(0.01)
        await anyio.sleep(0.5)  # several of the usual pauses
        assert server.heard == ["initialize"]
        server.streams, server.is_closed = [event({"method": "notifications/a"})], False
        await link.session.renew()
        await link.wait(2)
        tasks.cancel_scope.cancel()
    assert link.got[:2] == [CHANGED, "notifications/a"]


async def test_a_session_with_an_odd_name_is_an_error_and_no_crash(server, link):
    result = {"protocolVersion": "2025\u00e4", "capabilities": {}}
    _, reply = await ask(link.remote, INITIALIZE, {})
    link.session.note_opened(INITIALIZE, make_message({"id": 0, "result": result}), reply)
    with pytest.raises(RemoteError):
        await ask(link.remote, CALL, link.session.headers)
