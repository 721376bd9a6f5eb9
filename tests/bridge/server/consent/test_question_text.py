"""What a person reads who is asked about a call, whatever the caller wrote."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.consent.question_text import (
    MAX_ARGUMENTS,
    MAX_CHARS,
    MAX_NAME,
    Question,
    make_question,
    quote,
    write_question,
    write_summary,
    write_title,
)
from mcp_notebook.text.redaction import MASK
from mcp_notebook.wire.messages import ToolInfo


def written(arguments, **fields):
    fields = {"tool": "drop", "notebook": "sales", "caller": "owner"} | fields
    return write_question(Question(arguments=arguments, **fields)).splitlines()


def test_the_question_shows_the_tool_its_arguments_and_who_asks():
    lines = written({"why": 'a "b"', "year": 2012}, parameters=("year", "why"), client="Claude 2")
    assert lines == [
        "Allow this call of a notebook's tool?",
        "",
        "Tool: drop",
        "Notebook: sales",
        "Arguments:",
        "    year = 2012",
        '    why = "a \\"b\\""',
        'Asked by: owner, with the program "Claude 2"',
    ]
    assert written({})[4:] == ["Arguments: none", "Asked by: owner"]


def test_on_one_line_it_is_cut_and_says_so():
    asked = Question(
        tool="drop", notebook="sales", arguments={"n": 1, "sql": "x\n" * 900}, caller=""
    )
    assert write_title(asked) == "Allow drop?"
    said = write_summary(asked)
    assert said.startswith('Arguments: n = 1, sql = "x\\nx')
    assert said.endswith(" more characters are not shown)")
    assert said.isprintable()
    assert len(said) < 400
    none = Question(tool="a\nb", notebook="sales", arguments={}, caller="")
    assert (write_title(none), write_summary(none)) == ('Allow "a\\nb"?', "Arguments: none")


def test_secrets_are_not_shown():
    schema = {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}}
    entry = CatalogEntry(
        "drop", "k", "sales", ToolInfo(name="drop", input_schema=schema), "sales_drop"
    )
    text = write_question(make_question(entry, {"key": "hunter2"}, caller=OWNER))
    assert "hunter2" not in text
    assert f'key = "{MASK}"' in text


def test_the_defaults_that_will_be_used_are_shown_after_the_arguments():
    properties = {
        "before": {"type": "string", "default": "2024-02-01"},
        "customer": {"type": "string"},
        "key": {"type": "string", "format": "password", "default": "hunter2"},
        "dry": {"type": "boolean", "default": True},
    }
    schema = {"type": "object", "properties": properties, "required": ["customer"]}
    entry = CatalogEntry(
        "drop", "k", "sales", ToolInfo(name="drop", input_schema=schema), "sales_drop"
    )
    asked = make_question(entry, {"customer": "Ada", "dry": False}, caller=OWNER)
    assert write_summary(asked) == (
        'Arguments: customer = "Ada", dry = false, before = "2024-02-01" (default), '
        f'key = "{MASK}" (default)'
    )


@pytest.mark.parametrize(
    "hostile",
    [
        "x\n\nTool: harmless",
        "x\r\x0b\x0c\x1c\x85\u2028\u2029y",
        "\u202etxt.exe\u2066\u200f\u061c",
        "\x1b[2J\x9b1A\x07\x00",
        "\u200b\ufeff\u00ad\u3164\u2800\u115f\uffa0",
        "a" + "\u0301" * 500,
        "a" + " " * 300 + "Asked by: you",
        "\ud800 \U000e0041 \U000f0000",
        '"\nAsked by: you',
    ],
)
def test_hostile_text_stays_on_its_line_and_can_be_seen(hostile):
    lines = written({hostile: 1, "value": hostile, "deep": [{hostile: hostile}]}, client=hostile)
    assert len(lines) == 4 + 1 + 3 + 1
    assert all(line.isprintable() for line in lines)
    assert "Tool: harmless" not in lines
    assert sum(line.startswith("Asked by:") for line in lines) == 1
    text = "\n".join(lines)
    assert "  " not in text.replace("\n    ", "\n")
    assert not any(hidden in text for hidden in "\u3164\u2800\u115f\uffa0\u202e\u200b")
    assert "\u0301" * 3 not in text
    text.encode()


@given(st.recursive(st.none() | st.text() | st.integers() | st.booleans(), st.lists, max_leaves=5))
def test_what_is_shown_in_full_is_the_value(value):
    text = quote(value, 10**6)
    assert json.loads(text) == value
    assert text.isprintable()


def test_long_arguments_are_cut_and_say_so():
    lines = written({"sql": "x" * 9_000, "n": 1})
    (line,) = (line for line in lines if "sql" in line)
    assert len(line) < MAX_CHARS
    assert line.endswith("... (7,002 more characters are not shown)")
    assert len(written({}, client="y" * 9_000)[-1]) < 3 * MAX_NAME


def test_the_tools_own_parameters_are_shown_before_others():
    noise = {f"a{number:03}": "" for number in range(100)}
    lines = written({**noise, "year": 2012}, parameters=("year",))
    assert lines[5] == "    year = 2012"
    assert lines[5 + MAX_ARGUMENTS] == f"    ({101 - MAX_ARGUMENTS} more arguments are not shown)"
    assert len("\n".join(lines)) < 3 * MAX_CHARS


def test_long_hostile_arguments_take_no_time():
    """They took a second for each million characters, in which the bridge answered nobody."""
    hostile = "\u202e" * 10**6
    began = time.process_time()
    for _ in range(10):
        written({"a": hostile})
    assert time.process_time() - began < 3
