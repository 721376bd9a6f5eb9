import json

from mcp_notebook.bridge.connect.headers import ParameterHeaders, list_headers
from mcp_notebook.bridge.connect.messages import make_message, read_line

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def request(method, **params):
    content = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    return read_line(json.dumps(content).encode(), 10_000)


def test_version_method_and_name_are_headers():
    assert list_headers(request("tools/call", name="top")) == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "top",
    }
    assert list_headers(request("resources/read", uri="a:ä"))["mcp-name"] == "=?base64?YTrDpA==?="
    assert list_headers(request("tasks/get", taskId="t"))["mcp-name"] == "t"
    assert "mcp-name" not in list_headers(request("tools/list"))


def test_a_message_of_an_older_era_has_none():
    assert list_headers(make_message({"id": 1, "method": "tools/list"})) == {}


def test_arguments_that_belong_into_headers_are_known_from_the_list_of_tools():
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": region}}
    known = ParameterHeaders()
    call = request("tools/call", name="top", arguments={"region": "EU"})
    assert known.list_headers(call) == {}
    tools = [{"name": "top", "inputSchema": schema}, {"name": 1}, None]
    known.learn(make_message({"id": 1, "result": {"tools": tools}}))
    assert known.list_headers(call) == {"mcp-param-region": "EU"}
    assert known.list_headers(request("tools/call", name="top")) == {}
    plain = [{"name": "top", "inputSchema": {"type": "object"}}]
    known.learn(make_message({"id": 1, "result": {"tools": plain}}))
    assert known.list_headers(call) == {}
    known.learn(make_message({"id": 1, "result": {"tools": 5}}))
