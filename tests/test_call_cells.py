"""Calls as cells: valid notebooks, and code that makes the same call again."""

import ast
import json
from datetime import UTC, datetime

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.call_cells import (
    KEY,
    NBFORMAT,
    RecordedCall,
    format_call,
    hash_structured,
    make_call_cell,
    make_outputs,
    read_call_cells,
)
from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.redaction import MASK

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text(), items, max_size=3),
    max_leaves=8,
)
RESULT = Result(
    [
        Text("| a |\n|---|\n| 1 |"),
        Image(b"\x89PNG"),
        Audio(b"RIFF"),
        Resource("data://x", "words"),
        Resource("data://y", b"bytes", "application/pdf"),
        ResourceLink("notebook://kernel/1", "table.csv", mime_type="text/csv", size=1234),
    ],
    structured={"result": [1, 2]},
)


def call(**changes):
    fields = {
        "tool": "rain",
        "arguments": {"year": 2012},
        "client": "editor 1.2",
        "time": datetime(2026, 1, 2, tzinfo=UTC),
        "state": "done",
        "version": "1",
    }
    return RecordedCall(**fields | changes)


def notebook_of(*cells):
    return nbformat.from_dict({"metadata": {}, **NBFORMAT, "cells": list(cells)})


def test_a_cell_is_valid_and_says_everything_of_its_call():
    cell = make_call_cell(call(structured_hash=hash_structured(RESULT)), RESULT, "a1")
    notebook = notebook_of(cell)
    nbformat.validate(notebook)
    (recorded,) = read_call_cells(notebook)
    assert recorded.number == 1
    assert recorded.call == call(structured_hash=hash_structured(RESULT))
    assert recorded.outputs == make_outputs(RESULT)
    assert cell["source"] == "rain(year=2012)"


def test_outputs_have_pictures_as_jupyter_has_them_and_no_address_that_ends_with_the_kernel():
    table, picture, sound, words, document, link = make_outputs(RESULT)
    assert table["data"]["text/markdown"].startswith("| a |")
    assert picture["data"]["image/png"] == "iVBORw=="
    assert sound["data"]["audio/wav"] == "UklGRg=="
    assert words["data"] == {"text/plain": "words"}
    assert document["data"]["text/plain"].startswith("<application/pdf, 5 bytes, SHA-256 ")
    assert link["data"] == {"text/plain": "<link: table.csv (text/csv, 1,234 bytes)>"}


def test_an_error_is_one_of_the_cell_with_what_was_shown_before_it():
    result = Result([Image(b"1"), Text("It failed.\nBecause."), Text("Next.")], is_error=True)
    picture, error = make_outputs(result, "timed out")
    assert "image/png" in picture["data"]
    assert error == {
        "output_type": "error",
        "ename": "Call timed out",
        "evalue": "It failed.",
        "traceback": ["It failed.", "Because.", "Next."],
    }


def test_structured_content_alone_is_shown():
    (output,) = make_outputs(Result(structured={"a": 1}))
    assert json.loads(output["data"]["text/plain"]) == {"a": 1}


def test_cells_that_are_no_calls_are_passed_over():
    cells = [
        nbformat.v4.new_markdown_cell("# Title", metadata={KEY: {"tool": "rain"}}),
        nbformat.v4.new_code_cell("1 + 1"),
        nbformat.v4.new_code_cell("2", metadata={KEY: {"tool": "rain"}}),
        nbformat.v4.new_code_cell("2", metadata={KEY: 5}),
        nbformat.from_dict(make_call_cell(call(), RESULT, "b")),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert [cell.call for cell in read_call_cells(notebook)] == [call()]


@given(arguments=st.dictionaries(st.text(min_size=1), JSON, max_size=4))
def test_code_has_the_same_arguments_whatever_they_are(arguments):
    code = format_call("shop.rain", arguments)
    if code.startswith("%mcp call"):
        assert json.loads(code.removeprefix("%mcp call shop.rain ")) == arguments
    else:
        (expression,) = ast.parse(code).body
        keywords = expression.value.keywords
        assert {word.arg: ast.literal_eval(word.value) for word in keywords} == arguments


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "rain()"),
        ({"a": True, "b": None, "c": "x'y"}, 'rain(a=True, b=None, c="x\'y")'),
        ({"a": "x" * 90}, f"rain(\n    a='{'x' * 90}',\n)"),
        ({"class": 1}, '%mcp call rain {"class": 1}'),
    ],
)
def test_code_is_python_where_it_can_be(arguments, code):
    assert format_call("rain", arguments) == code


def test_values_that_a_function_gets_converted_are_left_to_the_magic():
    schema = {
        "properties": {
            "day": {"type": "string", "format": "date"},
            "year": {"type": "integer"},
            "place": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        }
    }
    assert format_call("rain", {"year": 1}, schema) == "rain(year=1)"
    assert format_call("rain", {"day": "2026-01-02"}, schema).startswith("%mcp call rain {")
    assert format_call("rain", {"place": {"city": "a"}}, schema).startswith("%mcp call rain {")


def test_secrets_are_a_gap_that_says_so():
    code = format_call("login", {"user": "ann", "password": MASK})
    assert code == "# Secrets are not recorded: put yours here.\nlogin(user='ann', password=...)"
    assert MASK not in code
