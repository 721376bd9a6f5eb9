"""Which messages are passed on without their arguments, and what becomes of these."""

import json
from types import SimpleNamespace

import pytest

from mcp_notebook.bridge.server.protocol.detached_arguments import (
    ARGUMENTS_KEY,
    MAX_REST,
    MessageTooLarge,
    StdioRequest,
    detach_arguments,
    find_arguments,
    identify_arguments,
    split_arguments,
)
from mcp_notebook.bridge.server.protocol.json_spans import NotJson
from mcp_notebook.errors import InvalidArguments

pytestmark = pytest.mark.anyio

ROWS = {"rows": [[1, "a"]] * 200_000, "n": 3}


def message(**changed):
    """Return the text of a call."""
    params = {"name": "top", "arguments": ROWS, "_meta": {"a": 1}} | changed.pop("params", {})
    return json.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params} | changed
    ).encode()


async def test_a_call_is_passed_on_without_its_arguments_which_are_in_the_scope():
    rest, scope = await detach_arguments(message())
    assert json.loads(rest) == json.loads(message(params={"arguments": {}}))
    assert scope == {ARGUMENTS_KEY: json.dumps(ROWS).encode()}
    assert find_arguments(SimpleNamespace(request=StdioRequest(scope))) == scope[ARGUMENTS_KEY]


async def test_short_arguments_stay_for_the_headers_that_repeat_them():
    rest, scope = await detach_arguments(message(), with_small=True)
    assert json.loads(rest)["params"]["arguments"] == {"n": 3}
    assert json.loads(scope[ARGUMENTS_KEY]) == ROWS


@pytest.mark.parametrize(
    "twice",
    [
        b'"params":{"name":"top","arguments":%b},"params":{"name":"top"}',
        b'"params":{"arguments":%b},"par\\u0061ms":{"name":"top","arguments":{"n":1}}',
        b'"params":{"name":"top","arguments":%b,"argument\\u0073":{"n":1}}',
        b'"params":{"arguments":%b},"par\\u0061ms":["arguments"]',
    ],
)
@pytest.mark.parametrize("with_small", [True, False])
async def test_a_call_with_arguments_twice_is_refused_so_that_nobody_checks_the_wrong_ones(
    twice, with_small
):
    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call",%b}' % twice
    with pytest.raises(NotJson):
        await detach_arguments(call % json.dumps(ROWS).encode(), with_small=with_small)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (b'{"n":1,"\\u006e":2,"n":3,"rows":%b}', {"n": 3}),
        (b'{"n":1,"\\u006e":2,"rows":%b}', {"n": 2}),
        (b'{"n":1,"\\u006e":%b}', {}),
    ],
)
async def test_of_short_arguments_with_one_name_the_last_one_stays_as_for_the_tool(arguments, left):
    params = b'{"name":"top","arguments":%b}' % (arguments % json.dumps(ROWS["rows"]).encode())
    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%b}' % params
    rest, _ = await detach_arguments(call, with_small=True)
    assert json.loads(rest)["params"]["arguments"] == left


@pytest.mark.parametrize("with_small", [True, False])
async def test_a_call_without_arguments_stays_as_it_is_whatever_makes_it_large(with_small):
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    call["params"] = {"name": "top", "inputResponses": {"a": "x" * (MAX_REST // 2)}}
    text = json.dumps(call).encode()
    assert await detach_arguments(text, with_small=with_small) == (text, {})


@pytest.mark.parametrize("request_", [None, StdioRequest({}), SimpleNamespace(scope={})])
async def test_other_calls_have_nothing_attached(request_):
    assert find_arguments(SimpleNamespace(request=request_)) is None


LONG = "x" * (MAX_REST + 1)


@pytest.mark.parametrize(
    ("changed", "answered"),
    [
        ({"method": "ping"}, 7),
        ({"id": "a", "params": {"arguments": [LONG]}}, "a"),
        ({"params": {"name": LONG}}, 7),
        ({"method": LONG}, 7),
        ({"id": LONG}, None),
        ({"id": None, "more": LONG}, None),
        ({"id": True, "more": LONG}, None),
    ],
    ids=["no call", "a list", "name", "method", "id", "no id", "wrong id"],
)
async def test_any_other_message_must_be_short(changed, answered):
    with pytest.raises(MessageTooLarge, match="Only a tool call may have more than") as refused:
        await detach_arguments(message(**changed))
    assert refused.value.request_id == answered


async def test_a_message_with_a_long_text_as_its_parameters_must_be_short():
    text = json.dumps({"id": 7, "method": "x", "params": LONG}).encode()
    with pytest.raises(MessageTooLarge, match="Only a tool call may have more than") as refused:
        await detach_arguments(text)
    assert refused.value.request_id == 7


async def test_what_is_not_json_is_said_to_be():
    with pytest.raises(NotJson):
        await detach_arguments(message()[:-1])


async def test_large_arguments_are_known_by_a_short_name():
    first = await identify_arguments(b"{}" * 10_000)
    assert first == await identify_arguments(b"{}" * 10_000)
    assert first != await identify_arguments(b"[]" * 10_000)
    assert len(json.dumps(first)) < 100


async def test_the_arguments_of_a_tool_that_is_called_by_another_are_taken_out():
    outer = {"name": "top", "arguments": ROWS}
    rest, own = await split_arguments(json.dumps(outer).encode())
    assert rest == {"name": "top", "arguments": {}}
    assert json.loads(own) == ROWS


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"{}", b'{"arguments":[]}', b'{"arguments":{},"name":%b}' % (b"1" * 9)]
)
async def test_arguments_without_a_tools_own_ones_are_refused(text):
    if text.endswith(b"1}"):
        text = text.replace(b"1" * 9, b'"%b"' % LONG.encode())
    with pytest.raises(InvalidArguments):
        await split_arguments(text)
