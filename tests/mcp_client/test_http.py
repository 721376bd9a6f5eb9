"""Servers are asked over Streamable HTTP, in both eras of MCP."""

import json
import threading
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2
import pytest
import uvicorn
from mcp.server import MCPServer

from mcp_notebook.mcp_client.client import McpClient
from mcp_notebook.mcp_client.http import HttpTransport
from mcp_notebook.protocol.errors import CONNECTION_CLOSED, INTERNAL_ERROR, ProtocolError
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE, LATEST_MODERN

pytestmark = pytest.mark.anyio
JSON = "application/json"
EVENTS = "text/event-stream"


@contextmanager
def server_that_answers(*answers):
    """A server with one answer (status, headers, body) for each request; yields the requests."""
    asked = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked.append((self.command, headers, json.loads(body or "null")))
            status, given, content = left.pop(0)
            self.send_response(status)
            for name, value in given.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_DELETE = do_POST  # noqa: N815 - the name of `http.server`

        def log_message(self, *_arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp", asked
        finally:
            server.shutdown()
            thread.join()


@asynccontextmanager
async def opened(url, version):
    async with httpx2.AsyncClient() as http, HttpTransport.open(http, url) as transport:
        yield McpClient(transport, "test", version)


def message(number=1, **members):
    return json.dumps({"jsonrpc": "2.0", "id": number, **members}).encode()


def result(number=1, **members):
    return 200, {"content-type": JSON}, message(number, result=members)


@pytest.fixture(scope="module")
def official():
    server = MCPServer("official")

    @server.tool()
    def add(a: int, b: int) -> str:
        return str(a + b)

    app = server.streamable_http_app()
    config = uvicorn.Config(app, port=0, log_config=None)
    served = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen()  # uvicorn starts to, some time after its thread has
    thread = threading.Thread(target=served.run, args=([socket],))
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}/mcp"
    served.should_exit = True
    thread.join()


@pytest.mark.parametrize("version", [LATEST_HANDSHAKE, LATEST_MODERN])
async def test_a_server_of_the_official_sdk_is_asked_in_both_eras(official, version):
    async with opened(official, version) as client:
        await client.open()
        tools = await client.list_tools()
        added = await client.call_tool("add", {"a": 2, "b": 3})
        with pytest.raises(ProtocolError):
            await client.call_tool("add", 5)
    assert [tool["name"] for tool in tools] == ["add"]
    assert added["content"] == [{"type": "text", "text": "5"}]


async def test_a_session_is_named_in_each_request_and_ended():
    opened_session = message(result={"protocolVersion": LATEST_HANDSHAKE, "serverInfo": {}})
    with server_that_answers(
        (200, {"content-type": JSON, "mcp-session-id": "s1"}, opened_session),
        (202, {}, b""),
        result(2, tools=[]),
        (204, {}, b""),
    ) as (url, asked):
        async with opened(url, LATEST_HANDSHAKE) as client:
            await client.open()
            await client.list_tools()
    sessions = [headers.get("mcp-session-id") for _, headers, _ in asked]
    assert sessions == [None, "s1", "s1", "s1"]
    assert [body and body["method"] for _, _, body in asked] == [
        *("initialize", "notifications/initialized", "tools/list"),
        None,
    ]
    assert asked[-1][0] == "DELETE"


async def test_headers_repeat_method_name_and_marked_arguments():
    marked = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    tool = {"name": "rain", "inputSchema": marked}
    with server_that_answers(result(tools=[tool]), result(2, content=[])) as (url, asked):
        async with opened(url, LATEST_MODERN) as client:
            await client.list_tools()
            await client.call_tool("rain", {"city": "Zürich"})
    _, headers, body = asked[1]
    assert headers["mcp-protocol-version"] == LATEST_MODERN
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "rain")
    assert headers["mcp-param-city"] == "=?base64?WsO8cmljaA==?="
    assert body["params"]["arguments"] == {"city": "Zürich"}


@pytest.mark.parametrize("tools", [5, None, [None, {"name": ["rain"]}]])
async def test_a_list_of_tools_may_be_anything(tools):
    with server_that_answers(result(tools=tools), result(2, content=[])) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            await client.list_tools()
            await client.call_tool("rain", {"city": "Z"})


async def test_the_answer_is_found_in_a_stream_of_events():
    stream = b"".join(
        [
            b": ping\n\n",
            b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n',
            b"data: " + message(7, result={"content": [1]}) + b"\n\n",
            b"data: " + message(1, result={"content": []}) + b"\r\n\r\n",
        ]
    )
    with server_that_answers((200, {"content-type": EVENTS}, stream)) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            assert await client.call_tool("t", {}) == {"content": []}


async def test_a_stream_that_ends_without_the_answer_is_a_closed_connection():
    with server_that_answers((200, {"content-type": EVENTS}, b": ping\n\n")) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            with pytest.raises(ProtocolError) as caught:
                await client.call_tool("t", {})
    assert caught.value.code == CONNECTION_CLOSED


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1]"])
async def test_what_is_not_a_message_is_named_with_its_status(body):
    with server_that_answers((502, {"content-type": "text/html"}, body)) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            with pytest.raises(ProtocolError, match="HTTP 502") as caught:
                await client.list_tools()
    assert caught.value.code == INTERNAL_ERROR


async def test_an_error_of_the_server_is_raised_whatever_its_status():
    error = message(error={"code": -32601, "message": "Method not found"})
    with server_that_answers((404, {"content-type": JSON}, error)) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            with pytest.raises(ProtocolError, match="Method not found"):
                await client.list_tools()


async def test_an_answer_may_have_any_characters():
    said = "one\u2028two\u2029three\u0085four\x0bfive"
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"said": said}}, ensure_ascii=False)
    stream = b"data: " + text.encode() + b"\n\n"
    with server_that_answers((200, {"content-type": EVENTS}, stream)) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            assert await client.call_tool("t", {}) == {"said": said}


async def test_an_event_may_have_its_data_in_several_lines():
    stream = b'data: {"jsonrpc": "2.0",\ndata: "id": 1, "result": {"content": []}}\n\n'
    with server_that_answers((200, {"content-type": EVENTS}, stream)) as (url, _):
        async with opened(url, LATEST_MODERN) as client:
            assert await client.call_tool("t", {}) == {"content": []}


async def test_a_server_that_has_gone_is_a_closed_connection_and_no_matter_at_the_end():
    opened_session = message(result={"protocolVersion": LATEST_HANDSHAKE, "serverInfo": {}})
    async with httpx2.AsyncClient() as http:
        with server_that_answers(
            (200, {"content-type": JSON, "mcp-session-id": "s1"}, opened_session), (202, {}, b"")
        ) as (url, _):
            open_transport = HttpTransport.open(http, url)
            client = McpClient(await open_transport.__aenter__(), "test", LATEST_HANDSHAKE)
            await client.open()
        with pytest.raises(ProtocolError, match="Connection closed") as caught:
            await client.list_tools()
        assert caught.value.code == CONNECTION_CLOSED
        await open_transport.__aexit__(None, None, None)
