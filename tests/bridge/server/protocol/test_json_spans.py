"""Where the values of a large JSON object are."""

import json

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook.bridge.server.protocol import json_spans
from mcp_notebook.bridge.server.protocol.json_spans import (
    MAX_DEPTH,
    MAX_MEMBERS,
    NotJson,
    find_members,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS | st.sampled_from(["[", '"]}"', "\\", '\\"', "{" * 9]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def find(text, **options):
    return anyio.run(lambda: find_members(text, **options))


@example({"infinite": float("-inf")}, True, None)
@given(
    st.dictionaries(st.text(), VALUES, max_size=4), st.booleans(), st.sampled_from([None, 1, "\t"])
)
def test_the_spans_of_an_object_are_the_texts_of_its_values(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    text = text.encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_spans, "_SLICE", 16 + max(map(len, map(json.dumps, value)), default=0))
        members = find(text)
    spans = {json.loads(b'"%b"' % path[0]): text[slice(*span)] for path, span in members.items()}
    assert {key: json.loads(span) for key, span in spans.items()} == value


def test_the_members_of_named_members_are_found_with_them():
    text = b' {"a" : {"b": [1, {"c": 2}], "d":"x"} , "e": {"f": 1}, "g": 3} '
    members = find(text, within=(b"a", b"g", b"nobody"))
    assert {path: text[slice(*span)] for path, span in members.items()} == {
        (b"a", b"b"): b'[1, {"c": 2}]',
        (b"a", b"d"): b'"x"',
        (b"a",): b'{"b": [1, {"c": 2}], "d":"x"}',
        (b"e",): b'{"f": 1}',
        (b"g",): b"3",
    }


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"1",
        b"null",
        b"{",
        b"}",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1}}',
        b'{"a":1} x',
        b'{"a":1 "b":2}',
        b"{a:1}",
        b'{"a":[1}',
        b'{"a":"b}',
        b'{"a":"b\\"}',
        b'{"a":{"b":"c}}',
        b"\xef\xbb\xbf{}",
        b'{"a":%b}' % (b"[" * (MAX_DEPTH + 1) + b"," * 2**20),
        json.dumps({str(number): 1 for number in range(MAX_MEMBERS + 1)}).encode(),
        b'{"a":%b' % (b"1" * 2**20),
        b'{"a":"%b' % (b"x" * 2**20),
        b"{" + b'"' * 2**20,
    ],
)
def test_only_objects_are_accepted(text):
    with pytest.raises(NotJson):
        find(text)


ROW = b'[1,"a\\"]",{"b":[]}]'


@pytest.mark.parametrize(
    "value",
    [b"[%b]" % b",".join([ROW] * 20_000), b'"%b"' % (b'x\\"' * 100_000), b"[" * 150 + b"]" * 150],
    ids=["rows", "a string", "deep"],
)
def test_other_tasks_run_while_a_large_value_is_looked_through(value):
    text = b'{"a":%b,"b":2}' % value
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async def look():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            members = await find_members(text)
            tasks.cancel_scope.cancel()
        return members

    members = anyio.run(look)
    assert text[slice(*members[b"a",])] == value
    assert text[slice(*members[b"b",])] == b"2"
    assert turns >= len(text) // json_spans._SLICE // 2
