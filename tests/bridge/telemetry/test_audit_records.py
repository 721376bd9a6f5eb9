"""What a line of the audit log says, and what it does not."""

import hashlib
import json

import pytest
from call_reports import end_of, start_of
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.telemetry.audit_records import (
    MAX_ARGUMENTS,
    MAX_ERROR,
    MAX_NAME,
    describe_end,
    describe_refusal,
    describe_start,
    encode,
)
from mcp_notebook.bridge.telemetry.call_events import CallRefusal
from mcp_notebook.text.redaction import MASK

_WORDS = ["properties", "items", "$ref", "$defs", "anyOf", "type", "format", "writeOnly"]
SECRET = {
    "type": "object",
    "properties": {"login": {"$ref": "#/$defs/Login"}},
    "$defs": {
        "Login": {"type": "object", "properties": {"key": {"type": "string", "writeOnly": True}}}
    },
}


def _line(start, mode="hash", **end):
    return json.loads(encode(describe_end(describe_start(start, mode), end_of(start, **end))))


def test_a_line_has_all_that_is_known_about_a_call():
    line = _line(start_of(), mode="full", queue_seconds=0.1, run_seconds=0.125)
    assert line == {
        "time": "2023-11-14T22:13:20.250Z",
        "kind": "call",
        "id": "a1b2-1",
        "outcome": "ok",
        "caller": "owner",
        "client": "claude-code 2.0",
        "kernel": "k1",
        "notebook": "sales",
        "tool": "top",
        "arguments": {"n": 1, "region": "EU"},
        "arguments_size": 21,
        "seconds": 0.25,
        "queue_seconds": 0.1,
        "run_seconds": 0.125,
        "result_size": 7,
    }


def test_equal_arguments_have_equal_hashes_in_whatever_order_they_came():
    first, second = (
        _line(start_of(arguments=arguments))
        for arguments in ({"a": 1, "b": {"c": 2, "d": "é"}}, {"b": {"d": "é", "c": 2}, "a": 1})
    )
    text = '{"a":1,"b":{"c":2,"d":"é"}}'
    assert first["arguments_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert first == second
    assert "arguments" not in first


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.none() | st.lists(st.floats(0.001, 1e9))))
def test_the_hash_of_arguments_is_that_of_their_json(arguments):
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    line = _line(start_of(arguments=arguments))
    assert line["arguments_sha256"] == hashlib.sha256(text).hexdigest()
    assert line["arguments_size"] == len(text)


def test_of_long_arguments_there_is_the_hash_only():
    line = _line(start_of(arguments={"a": "x" * MAX_ARGUMENTS}), mode="full")
    assert len(line["arguments_sha256"]) == 64
    assert "arguments" not in line


@pytest.mark.parametrize("mode", ["full", "hash", "none"])
def test_a_secret_is_neither_in_the_line_nor_in_the_hash(mode):
    first, second = (
        _line(start_of(arguments={"login": {"key": key}}, input_schema=SECRET), mode)
        for key in ("hunter2", "correct horse")
    )
    assert "hunter2" not in str(first)
    assert first.get("arguments_sha256") == second.get("arguments_sha256")


@pytest.mark.parametrize("surrogate", ["\ud800", ""])
def test_nothing_in_a_line_reaches_a_terminal_but_text(surrogate):
    bad = f"\x1b]0;title\x07 \x7f \x9b31m \u202e {surrogate} \n"
    start = start_of(client=bad, tool=bad, arguments={bad: bad})
    line = encode(describe_end(describe_start(start, "full"), end_of(start, "error", error=bad)))
    assert line.endswith(b"}\n")
    assert all(0x20 <= byte < 0x7F for byte in line[:-1])
    assert json.loads(line)["error"] == bad


def test_what_a_client_chooses_is_cut():
    start = start_of(client="c" * 10**6)
    line = _line(start, outcome="error", error="e" * 10**6)
    assert len(line["client"]) == MAX_NAME
    assert len(line["error"]) == MAX_ERROR
    refusal = CallRefusal(at=0, caller="bob", client="", tool="t" * 10**6, reason="r" * 10**6)
    assert "notebook" not in describe_refusal(refusal, "full")
    assert len(encode(describe_refusal(refusal, "full"))) < 2 * (MAX_NAME + MAX_ERROR)


def test_a_refused_call_has_its_arguments_as_others_have():
    refusal = CallRefusal(
        at=0,
        caller="bob",
        client="",
        tool="x",
        reason="No.",
        kernel="k",
        notebook="n",
        arguments={"login": {"key": "hunter2"}},
        input_schema=SECRET,
    )
    full, hashed, none = (describe_refusal(refusal, mode) for mode in ("full", "hash", "none"))
    assert full["arguments"]["login"] == {"key": MASK}
    assert "hunter2" not in str(full)
    assert len(hashed["arguments_sha256"]) == 64
    assert "arguments" not in hashed
    assert none.keys() & {"arguments", "arguments_sha256"} == set()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.sampled_from(["a", *_WORDS]), inner)
        | st.fixed_dictionaries({"properties": st.dictionaries(st.just("a"), inner)})
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text() | st.just("a"), JSON),
    st.dictionaries(st.sampled_from(_WORDS), JSON),
    st.sampled_from(["full", "hash", "none"]),
)
def test_every_call_has_a_line_whatever_its_arguments_and_schema_are(arguments, schema, mode):
    assert _line(start_of(arguments=arguments, input_schema=schema), mode)["tool"] == "top"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (10**5000, "ValueError"),
        (float("inf"), "ValueError"),
        ("\ud800", "UnicodeEncodeError"),
    ],
    ids=["digits", "infinity", "surrogate"],
)
def test_a_call_is_recorded_even_if_its_arguments_are_not_valid_json(value, problem):
    line = encode(describe_start(start_of(arguments={"a": value}), "full"))
    assert b"Infinity" not in line
    assert json.loads(line)["arguments_problem"] == problem
