import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.connect.messages import (
    InvalidMessage,
    make_error,
    make_message,
    read_body,
    read_line,
    replace_id,
)

MOST = 10_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_a_message_or_said_to_be_none(value):
    line = json.dumps(value).encode()
    with suppress(InvalidMessage):
        assert read_line(line, MOST).body == line
    read_body(line)


def test_a_message_is_read_as_far_as_needed():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": meta}})
    message = read_line(line.encode(), MOST)
    assert message.is_request
    assert message.version == "2026-07-28"
    assert message.result == {}
    answer = read_line(b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', MOST)
    assert answer.is_answer
    assert not answer.is_request
    assert answer.result == {"a": 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "at most 10,000 bytes"),
        (b"x", "not JSON"),
        (b"[{}]", "Batches"),
        (b"1", "not a JSON-RPC"),
        (b"{}", "not a JSON-RPC"),
        (b'{"id":true,"method":"x"}', "not a JSON-RPC"),
        (b'{"id":1,"method":2}', "not a JSON-RPC"),
    ],
)
def test_the_error_for_an_invalid_line_gives_the_reason(line, reason):
    with pytest.raises(InvalidMessage, match=reason):
        read_line(line, MOST)


def test_an_answer_gets_the_id_of_its_request():
    answer = make_error(None, "No.")
    assert json.loads(replace_id(answer, 7).body)["id"] == 7
    assert replace_id(answer, None) is answer


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def headers_of(method, **params):
    return make_message({"id": 1, "method": method, "params": {"_meta": META, **params}}).headers


def test_version_method_and_name_are_headers():
    assert headers_of("tools/call", name="top") == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "top",
    }
    assert headers_of("resources/read", uri="a:ä")["mcp-name"] == "=?base64?YTrDpA==?="
    assert headers_of("tasks/get", taskId="t")["mcp-name"] == "t"
    assert "mcp-name" not in headers_of("tools/list")


def test_a_message_of_an_older_era_has_no_headers():
    assert make_message({"id": 1, "method": "tools/list"}).headers == {}
