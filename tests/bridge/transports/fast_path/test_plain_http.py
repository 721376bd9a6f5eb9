"""Which requests over HTTP are answered without the SDK, and which go on to it as they came."""

import json

import anyio
import pytest
from linked_servers import make_server

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.transports.fast_path.plain_http import PlainHttp
from mcp_notebook.bridge.transports.sessions import Sessions
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
CALL = {
    "jsonrpc": "2.0",
    "id": "a",
    "method": "tools/call",
    "params": {"name": "top", "arguments": {"region": "EU", "n": 1}, "_meta": META},
}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
}
FOR_LIST = HEADERS | {"mcp-method": "tools/list"}
FOR_CALL = HEADERS | {"mcp-method": "tools/call", "mcp-name": "top", "mcp-param-region": "EU"}


class Exchange:
    """A request to the middleware: what it sends, and what goes on to the SDK."""

    def __init__(self, message, headers, pieces=1):
        self.body = message if isinstance(message, bytes) else json.dumps(message).encode()
        headers = {"content-length": str(len(self.body))} | headers
        raw = [(k.encode(), v.encode("latin-1")) for k, v in headers.items() if v is not None]
        self.scope = {"type": "http", "method": "POST", "headers": raw, SCOPE_KEY: OWNER}
        size = -(-len(self.body) // pieces) or 1
        self.pieces = [self.body[i : i + size] for i in range(0, len(self.body), size)] or [b""]
        self.sent = []
        self.went_on = None

    async def receive(self):
        if not self.pieces:
            await anyio.sleep_forever()
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}

    async def send(self, message):
        self.sent.append(message)

    async def go_on(self, _scope, receive, _send):
        chunks, more = [], True
        while more:
            message = await receive()
            chunks.append(message["body"])
            more = message.get("more_body", False)
        self.went_on = b"".join(chunks)

    async def run(self):
        catalog = Catalog()
        schema = {"type": "object", "properties": {"region": {"type": "string"}}}
        schema["properties"]["region"]["x-mcp-header"] = "Region"
        tool = messages.ToolInfo(name="top", input_schema=schema)
        async with Links(catalog) as links:
            catalog.set_kernel("k", notebook="sales", tools=[tool])
            server = make_server(catalog, links)
            sessions = Sessions(server.mcp, Limits())
            middleware = PlainHttp(self.go_on, server, sessions, max_bytes=2**20)
            await middleware(self.scope, self.receive, self.send)
        return self


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize(("message", "headers"), [(LIST, FOR_LIST), (CALL, FOR_CALL)])
async def test_a_plain_request_is_answered(message, headers, pieces):
    exchange = await Exchange(message, headers, pieces).run()
    assert exchange.went_on is None
    start, body = exchange.sent
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"] == b"application/json"
    assert int(dict(start["headers"])[b"content-length"]) == len(body["body"])
    answer = json.loads(body["body"])
    assert answer["id"] == message["id"]
    assert answer["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        (LIST, FOR_LIST | {"content-type": "text/plain"}),
        (LIST, FOR_LIST | {"content-type": None}),
        (LIST, FOR_LIST | {"accept": "application/json"}),
        (LIST, FOR_LIST | {"accept": None}),
        (LIST, FOR_LIST | {"mcp-protocol-version": None}),
        (LIST, FOR_LIST | {"mcp-protocol-version": "2027-01-01"}),
        (LIST, FOR_LIST | {"mcp-method": "tools/call"}),
        (LIST, FOR_LIST | {"mcp-method": None}),
        (LIST | {"params": {}}, FOR_LIST),
        (LIST | {"id": None}, FOR_LIST),
        (LIST | {"method": "skills/list"}, FOR_LIST | {"mcp-method": "skills/list"}),
        (LIST | {"method": "prompts/list"}, FOR_LIST),
        (CALL, FOR_CALL | {"mcp-name": "other"}),
        (CALL, FOR_CALL | {"mcp-name": None}),
        (CALL, FOR_CALL | {"mcp-name": "=?base64?b3RoZXI=?="}),
        (CALL, FOR_CALL | {"mcp-param-region": None}),
        (CALL, FOR_CALL | {"mcp-param-region": "US"}),
        (b"{", FOR_CALL),
        (b"", FOR_CALL),
        (b" " * (2**20 + 1), FOR_CALL),
    ],
)
async def test_everything_else_goes_on_as_it_came(message, headers):
    exchange = await Exchange(message, headers).run()
    assert exchange.went_on == exchange.body
    assert exchange.sent == []


async def test_a_header_that_comes_twice_is_for_the_sdk():
    exchange = Exchange(LIST, FOR_LIST)
    exchange.scope["headers"].append((b"mcp-method", b"tools/list"))
    assert (await exchange.run()).went_on == exchange.body
