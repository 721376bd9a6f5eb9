"""The answers to plain requests say what the SDK would say."""

import itertools
import json
from types import SimpleNamespace

import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server
from mcp.server.runner import ServerRunner

from mcp_notebook.bridge.server.declaration import SERVER_INFO
from mcp_notebook.bridge.server.protocol.protocol_error import ProtocolError
from mcp_notebook.bridge.server.protocol.result_forms import make_call_result
from mcp_notebook.bridge.server.protocol.tool_form import VERSIONS
from mcp_notebook.bridge.transports.fast_path.plain_answers import PlainAnswers, expand, write_error
from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text

SERVER = Server(**SERVER_INFO)
PICTURE = bytes(range(256))
RESULTS = [
    Result(),
    Result([Text("a"), Text('Ünï\u2028 "q" \\ \x00')], is_error=True),
    Result([Text("long", brief="short")], structured={"a": [1, 2.5, None, True, "x"]}),
    Result([Text("long", brief="short")], structured=[1, 2]),
    Result([Text("long")], structured={"nan": float("nan"), "inf": float("-inf"), "big": 10**30}),
    Result([Image(PICTURE), Audio(PICTURE), Resource("a:b", PICTURE), Resource("a:c", "text")]),
    Result(
        [
            Image(b"", "image/webp", audience="user", priority=0.5, last_modified="2025-01-01"),
            Resource("a:b", b"", audience=("user", "assistant"), priority=1),
            ResourceLink("a:b", "name"),
            ResourceLink("a:b", "name", "title", "about", "text/csv", 7, audience="user"),
        ],
        meta={"a.b/c": {"d": None}},
    ),
    Result([Image(PICTURE * 2_000)]),
    Result([Text("a")], meta={types.SERVER_INFO_META_KEY: {"name": "other"}}),
    Result([Text("a")], meta={types.SERVER_INFO_META_KEY: None}),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_the_sdks(result):
    answers = PlainAnswers(SimpleNamespace())
    runner = ServerRunner(SERVER, None, None)
    for version, takes_structured in itertools.product(VERSIONS, [True, False]):
        pieces = answers.write_result(result, version, takes_structured=takes_structured)
        made = make_call_result(result, version, takes_structured=takes_structured)
        shaped = runner._serialize("tools/call", version, made)
        message = types.JSONRPCResponse(jsonrpc="2.0", id=1, result=shaped)
        expected = json.loads(message.model_dump_json())["result"]
        assert json.loads(b"".join(expand(pieces))) == expected, (version, takes_structured)


def test_an_error_is_the_sdks():
    error = types.ErrorData(code=-32602, message="no Ü", data={"a": None})
    for request_id in (1, "a\n"):
        message = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
        answer = write_error(request_id, ProtocolError(error.code, error.message, error.data))
        dumped = message.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert json.loads(b"".join(expand(answer.pieces))) == dumped
        assert answer.error_code == -32602
