"""Which requests are plain; that their answers are the SDK's is tested with the transports."""

import json

import pytest

from mcp_notebook.bridge.transports.fast_path.plain_requests import (
    read_envelope,
    read_plain_request,
)
from mcp_notebook.wire import messages

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}
PLAIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "top", "arguments": {"n": 1}, "_meta": {"progressToken": "p", "x": None}},
}


def changed(**changes):
    return json.dumps(PLAIN | changes).encode()


def with_params(**params):
    return changed(params=PLAIN["params"] | params)


@pytest.mark.parametrize(
    "text",
    [
        changed(),
        changed(id="a"),
        changed(params={"name": "top"}),
        changed(method="tools/list", params={}),
        changed(method="prompts/list", params={"cursor": "c"}),
        changed(method="resources/list", params={}),
        changed(method="resources/templates/list", params={}),
        changed(method="tools/list", params={"cursor": "c", "_meta": {"progressToken": 1}}),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode(),
        b" " + changed() + b"\n",
    ],
)
def test_a_call_or_list_with_nothing_unusual_is_plain(text):
    plain = read_plain_request(text)
    assert plain is not None
    message = json.loads(text)
    assert (plain.id, plain.method, plain.params) == (
        message["id"],
        message["method"],
        message.get("params", {}),
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"[" + changed() + b"]",
        b"\xff",
        changed()[:-1],
        changed().replace(b'"top"', b'"\\ud800"'),
        changed(jsonrpc="1.0"),
        changed(more=1),
        changed(id=None),
        changed(id=True),
        changed(id=1.0),
        changed(id=[1]),
        changed(method="tools/get"),
        changed(method=["tools/call"]),
        changed(method=None),
        changed(params=None),
        changed(params=[]),
        json.dumps({key: PLAIN[key] for key in PLAIN if key != "id"}).encode(),
        json.dumps({key: PLAIN[key] for key in PLAIN if key != "params"}).encode(),
        changed(params={}),
        with_params(name=1),
        with_params(arguments=None),
        with_params(arguments=[]),
        with_params(task={}),
        with_params(requestState="s"),
        with_params(inputResponses={}),
        with_params(cursor="c"),
        with_params(_meta=None),
        with_params(_meta={"progressToken": True}),
        with_params(_meta={"progressToken": None}),
        with_params(_meta={"progressToken": 1.5}),
        with_params(_meta={"progress_token": 1}),
        changed(method="tools/list"),
        changed(method="tools/list", params={"cursor": 1}),
        changed(method="tools/list", params={"cursor": None}),
        changed(method="prompts/list"),
        changed(method="skills/list", params={}),
    ],
)
def test_anything_else_is_not(text):
    assert read_plain_request(text) is None


def test_what_a_client_says_of_itself_is_read():
    envelope = read_envelope(META | {"progressToken": 1})
    assert envelope.client == messages.ClientInfo(name="c", version="1")
    assert (envelope.can_elicit, envelope.shows_forms) == (True, True)


@pytest.mark.parametrize(
    "change",
    [
        {"io.modelcontextprotocol/protocolVersion": "2025-11-25"},
        {"io.modelcontextprotocol/protocolVersion": 1},
        {"io.modelcontextprotocol/clientCapabilities": None},
        {"io.modelcontextprotocol/clientCapabilities": {"elicitation": 1}},
        {"io.modelcontextprotocol/clientInfo": {}},
        {"io.modelcontextprotocol/clientInfo": {"name": "c" * 5_000, "version": "1"}},
        {"io.modelcontextprotocol/logLevel": "loud"},
    ],
)
def test_what_it_says_must_be_what_the_sdk_takes(change):
    assert read_envelope(META | change) is None
