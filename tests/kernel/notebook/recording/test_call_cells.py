"""Calls as cells: valid notebooks, and code that makes the same call again."""

import ast
import json
import math
import re
from datetime import UTC, datetime

import nbformat
import pytest
from hostile_texts import hostile_texts, objects
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from msgspec import convert
from recorded_cells import read_call_cells
from traitlets.config import Config

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.notebook.recording.call_cells import (
    KEY,
    NBFORMAT,
    RecordedCall,
    describe_call,
    format_call,
    make_call_cell,
    make_outputs,
)
from mcp_notebook.kernel.notebook.recording.replay import Output
from mcp_notebook.text.redaction import MASK

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


@pytest.mark.smoke
def test_a_cell_is_valid_and_says_everything_of_its_call():
    cell = make_call_cell(call(), RESULT, "a1", {})
    notebook = notebook_of(cell)
    nbformat.validate(notebook)
    (recorded,) = read_call_cells(notebook)
    assert recorded.call == call()
    assert recorded.outputs == convert(make_outputs(RESULT), list[Output])
    assert cell["source"] == "rain(\n    year=2012,\n)"


def test_outputs_have_pictures_as_jupyter_has_them_and_no_address_that_ends_with_the_kernel():
    table, picture, sound, words, document, link = make_outputs(RESULT)
    assert table["data"]["text/markdown"].startswith("| a |")
    assert picture["data"]["image/png"] == "iVBORw=="
    assert sound["data"]["audio/wav"] == "UklGRg=="
    assert words["data"] == {"text/plain": "words"}
    assert document["data"]["text/plain"].startswith("<application/pdf, 5 bytes, SHA-256 ")
    assert link["data"] == {"text/plain": "<link: table.csv (text/csv, 1,234 bytes)>"}


def test_a_table_is_shown_as_people_see_tables_and_in_consoles_as_the_client_got_it():
    text = "DataFrame: 1 row x 2 columns; a int64, b str\n\na,b\n1,\u202e"
    (output,) = make_outputs(Result([Text(text)]))
    assert output["data"]["text/plain"] == text
    assert '<table border="1" class="dataframe">' in output["data"]["text/html"]
    assert "\\u202e" in output["data"]["text/html"]


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


def test_cells_that_are_not_calls_are_skipped():
    cells = [
        nbformat.v4.new_markdown_cell("# Title", metadata={KEY: {"tool": "rain"}}),
        nbformat.v4.new_code_cell("1 + 1"),
        nbformat.v4.new_code_cell("2", metadata={KEY: {"tool": "rain"}}),
        nbformat.v4.new_code_cell("2", metadata={KEY: 5}),
        nbformat.from_dict(make_call_cell(call(), RESULT, "b")),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert [cell.call for cell in read_call_cells(notebook)] == [call()]


@pytest.fixture(scope="module")
def shell():
    """IPython without a kernel."""
    options = {"HistoryManager": {"enabled": False}, "InteractiveShell": {"warn_venv": False}}
    shell = InteractiveShell(config=Config(options))
    shell.user_ns["fired"] = []
    yield shell
    shell.restore_sys_module_state()


def read_code(shell, code, tool):
    """Return the arguments of a call that is written as code, which must be nothing else."""
    assert code.isascii()
    (statement,) = ast.parse(shell.transform_cell(code)).body
    call = statement.value
    assert isinstance(call, ast.Call)
    if code.startswith(tool):
        assert (ast.unparse(call.func), call.args) == (tool, [])
        return {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    assert ast.unparse(call.func) == "get_ipython().run_line_magic"
    magic, line = map(ast.literal_eval, call.args)
    assert (magic, call.keywords) == ("mcp", [])
    assert (shell.var_expand(line), shell.user_ns["fired"]) == (line, [])
    assert line.startswith(f"call {tool} ")
    return json.loads(line.removeprefix(f"call {tool} "))


@given(
    tool=st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True)
    | st.sampled_from(["cat", "system", "timeit", "rain"]),
    arguments=objects(),
    is_function=st.booleans(),
)
def test_code_is_one_call_of_literals_that_ipython_leaves_as_it_is(
    shell, tool, arguments, is_function
):
    code = format_call(tool, arguments, {} if is_function else None)
    assert repr(read_code(shell, code, tool)) == repr(arguments)  # NaN is not equal to itself


@given(
    tool=hostile_texts() | st.just("a.b"),
    arguments=objects(),
    never_ran=st.booleans(),
    is_function=st.booleans(),
)
def test_the_cell_of_a_call_that_never_ran_or_of_no_tool_runs_nothing(
    shell, tool, arguments, never_ran, is_function
):
    schema = {} if is_function else None
    recorded = call(tool=tool, arguments=arguments, never_ran=never_ran)
    cell = make_call_cell(recorded, RESULT, "a", schema)
    is_name = re.fullmatch(r"[A-Za-z0-9_.-]+", tool)
    statements = ast.parse(shell.transform_cell(cell["source"])).body
    assert len(statements) == (1 if is_name and not never_ran else 0)
    assert cell["source"].isascii()


@given(arguments=objects())
def test_a_cell_is_json_to_browsers_whatever_was_sent(arguments):
    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    cell = make_call_cell(call(arguments=arguments), RESULT, "a")
    (recorded,) = read_call_cells(notebook_of(json.loads(json.dumps(cell), parse_constant=refuse)))
    assert repr(recorded.call.arguments) == repr(arguments)


def test_arguments_of_any_depth_are_recorded():
    deep = []
    for _ in range(300):
        deep = [deep]
    cell = make_call_cell(call(arguments={"a": deep}), RESULT, "a", {})
    assert cell["source"].startswith("%mcp call rain {")
    (recorded,) = read_call_cells(notebook_of(cell))
    assert recorded.call.arguments == {"a": deep}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "rain(\n)"),
        ({"a": True, "c": "x'y"}, 'rain(\n    a=True,\n    c="x\'y",\n)'),
        ({"a": "S\xe3o\u2028"}, "rain(\n    a='S\\xe3o\\u2028',\n)"),
        ({"class": 1}, '%mcp call rain {"class": 1}'),
        ({"gr\xf6\xdfe": 1}, '%mcp call rain {"gr\\u00f6\\u00dfe": 1}'),
        ({"a": math.nan, "b": [-math.inf]}, '%mcp call rain {"a": NaN, "b": [-Infinity]}'),
    ],
)
def test_code_is_python_where_it_can_be(arguments, code):
    assert format_call("rain", arguments, {}) == code


@pytest.mark.parametrize("value", ["x" * 200, {"a": ["x" * 200]}, "'\"" * 100, 10**100])
def test_a_call_that_is_only_shown_is_not_code_where_it_is_cut(value):
    text = describe_call("rain", {"city": value}, 60)
    assert len(text) <= 60
    assert text.startswith("rain(city=")
    with pytest.raises(SyntaxError):
        ast.parse(text)


def test_names_that_are_none_are_shown_in_quotes():
    assert describe_call("rain", {"a=1)#": 1, "b": "x"}, 60) == "rain('a=1)#'=1, b='x')"
    assert describe_call("x\ny()", {}, 60) == r"'x\ny()'()"


def test_values_that_a_function_gets_converted_are_left_to_the_magic():
    schema = {
        "properties": {
            "day": {"type": "string", "format": "date"},
            "year": {"type": "integer"},
            "place": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        }
    }
    assert format_call("rain", {"year": 1}, schema) == "rain(\n    year=1,\n)"
    assert format_call("rain", {"day": "2026-01-02"}, schema).startswith("%mcp call rain {")
    assert format_call("rain", {"place": {"city": "a"}}, schema).startswith("%mcp call rain {")


def test_secrets_are_a_gap_that_says_so():
    code = format_call("login", {"user": "ann", "password": MASK}, {})
    assert code == (
        "# Secrets are not recorded: put yours here.\nlogin(\n    user='ann',\n    password=...,\n)"
    )
    assert MASK not in code
    code = format_call("login", {"keys": [{"key": MASK}]}, {})
    assert code.endswith("keys=[{'key': ...}],\n)")
    code = format_call("login", {"password": MASK, MASK: "x"})
    assert code.endswith(f'%mcp call login {{"password": ..., "{MASK}": "x"}}')
