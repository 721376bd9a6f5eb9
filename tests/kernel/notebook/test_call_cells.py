"""Calls as cells: valid notebooks, and code that makes the same call again."""

import ast
import json
import re
from datetime import UTC, datetime

import nbformat
import pytest
from hostile_texts import hostile_texts, objects
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.call_cells import (
    format_call,
    make_cell,
    make_outputs,
)
from mcp_notebook.kernel.tools.context import ClientProgram
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
        "number": 1,
        "client": ClientProgram("editor", "1.2"),
        "came": datetime(2026, 1, 2, tzinfo=UTC).timestamp(),
        "state": CallState.DONE,
        "queue_seconds": 0.0,
        "run_seconds": 0.5,
    }
    return LoggedCall(**fields | changes)


def notebook_of(*cells):
    return nbformat.from_dict(
        {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": list(cells)}
    )


@pytest.mark.smoke
def test_a_cell_is_valid_and_calls_again_what_was_called():
    cell = make_cell(call(), RESULT)
    nbformat.validate(notebook_of(cell))
    assert cell["outputs"] == make_outputs(RESULT)
    assert cell["source"] == '%mcp call rain {"year": 2012}'


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
)
def test_code_is_one_call_whose_arguments_are_json_that_ipython_leaves_as_it_is(
    shell, tool, arguments
):
    code = format_call(tool, arguments)
    assert repr(read_code(shell, code, tool)) == repr(arguments)  # NaN is not equal to itself


@given(
    tool=hostile_texts() | st.just("a.b"),
    arguments=objects(),
    never_ran=st.booleans(),
)
def test_the_cell_of_a_call_that_never_ran_or_of_no_tool_runs_nothing(
    shell, tool, arguments, never_ran
):
    cell = make_cell(call(tool=tool, arguments=arguments, never_ran=never_ran), RESULT)
    is_name = re.fullmatch(r"[A-Za-z0-9_.-]+", tool)
    statements = ast.parse(shell.transform_cell(cell["source"])).body
    assert len(statements) == (1 if is_name and not never_ran else 0)
    assert cell["source"].isascii()


def test_secrets_are_a_gap_that_says_so():
    code = format_call("login", {"user": "ann", "password": MASK, MASK: "x"})
    assert code == (
        "# Secrets are not recorded: put yours here.\n"
        f'%mcp call login {{"user": "ann", "password": ..., "{MASK}": "x"}}'
    )
    code = format_call("login", {"keys": [{"key": MASK}]})
    assert code.endswith('{"keys": [{"key": ...}]}')
