"""Help on options: each of them, for the magic's line and for the decorator."""

import inspect
import re
from dataclasses import fields

import pytest
from IPython.core.oinspect import getdoc

from mcp_notebook import mcp_tool
from mcp_notebook.kernel.notebook.magic_line import list_option_words
from mcp_notebook.kernel.notebook.magics.magics import McpMagics
from mcp_notebook.kernel.notebook.magics.option_help import describe_keywords, describe_line_options
from mcp_notebook.kernel.tools.options import ToolOptions


def test_the_help_of_the_line_has_every_word_of_it():
    text = describe_line_options()
    for word in list_option_words():
        assert f" {word}" in text
    assert "--closed-world  (open_world=False in Python)" in text


def test_the_help_of_the_line_names_what_only_python_can_say():
    end = describe_line_options().rpartition("\n\n")[2]
    assert end.startswith("Only as keywords of `@mcp_tool`: ")
    for name in ("meta", "input_schema", "executor"):
        assert f"`{name}`" in end


@pytest.mark.parametrize("option", [option.name for option in fields(ToolOptions)])
def test_the_help_of_the_decorator_has_every_keyword(option):
    assert f"\n  {option}: " in describe_keywords()


@pytest.mark.parametrize("describe", [describe_line_options, describe_keywords])
def test_the_options_that_few_tools_need_come_last_and_one_sentence_says_what_a_call_may_do(
    describe,
):
    title, common, rare = re.split("(?:Common|Rare) options:\n", describe())
    assert title == ""
    for name in ("read_only", "confirm", "timeout", "cache"):
        assert re.search(rf"^  (--)?{name.replace('_', '[-_]')}", common, re.MULTILINE)
    for name in ("related", "priority", "idempotent", "icon"):
        assert re.search(rf"^  (--)?{name}", rare, re.MULTILINE)
    thought = " ".join(common.strip().partition("\n\n")[0].split())
    for word in ("destructive", "read", "confirm", "confirm_destructive"):
        assert word in thought
    assert thought.count(". ") == 0


def test_lines_fit_a_notebook():
    text = f"{describe_line_options()}\n{describe_keywords()}"
    assert max(map(len, text.splitlines())) <= 92


def test_ipython_shows_the_docstring_and_then_the_options():
    for asked, described in (
        (McpMagics.mcp_tool, describe_line_options()),
        (mcp_tool, describe_keywords()),
    ):
        shown = getdoc(asked)
        assert shown.startswith(inspect.getdoc(asked))
        assert shown.endswith(described)


def test_the_signature_of_the_decorator_has_names_types_and_defaults():
    parameters = inspect.signature(mcp_tool).parameters
    assert parameters["function"].kind is inspect.Parameter.POSITIONAL_ONLY
    for option in fields(ToolOptions):
        assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option.name].default == option.default
        assert parameters[option.name].annotation == option.type


def test_the_help_of_the_magic_is_what_a_notebook_shows(kernel):
    shown = kernel.open_pager("%%mcp_tool?")
    assert "%%mcp_tool name(city: str, n: int = 3) [options]" in shown
    assert "--timeout 60s" in shown
