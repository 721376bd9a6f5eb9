"""The tools that a cell or a line declares, before they are offered to clients."""

import cmath
import math
import statistics

import pytest

from mcp_notebook import mcp_prompt, mcp_tool
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.declarations import (
    declare_cell,
    declare_names,
    find_replaced_names,
)
from mcp_notebook.kernel.notebook.magic_line import build_parser, read_line


def cell(shell, text):
    """Declare a cell, given as what follows ``%%mcp_tool``."""
    head, _, body = text.partition("\n")
    return declare_cell(shell, read_line(build_parser(), head, body, str), None).tools


def names(shell, line, kind="tool"):
    """Declare what a line names, given as what follows ``%mcp_tool``."""
    return declare_names(shell, read_line(build_parser(kind), line, None, str, kind), None).tools


def test_each_public_function_of_a_cell_is_a_tool_with_the_options_of_the_line(shell):
    tools = cell(shell, "--read-only --tag a\ndef f(): 'F.'\ndef _g(): ...\ndef h(): 'H.'")
    assert [tool.name for tool in tools] == ["f", "h"]
    assert all(tool.options.read_only for tool in tools)
    assert [tool.function for tool in tools] == [shell.user_ns["f"], shell.user_ns["h"]]


def test_a_cell_with_a_signature_is_one_tool_and_a_function_of_the_notebook(shell):
    (tool,) = cell(shell, "double(n: int) --title Double\n# Twice.\nn * 2")
    assert (tool.name, tool.info.title, tool.info.description) == ("double", "Double", "Twice.")
    assert shell.user_ns["double"](4) == 8


def test_the_line_goes_before_the_decorator_and_leaves_its_other_options(shell):
    shell.user_ns["mcp_tool"] = mcp_tool
    (tool,) = cell(shell, "--title Line\n@mcp_tool(title='Mark', priority=2)\ndef f(): 'F.'")
    assert (tool.options.title, tool.options.priority) == ("Line", 2)


def test_the_line_of_existing_functions_leaves_the_other_options_of_their_decorator(shell):
    shell.user_ns["f"] = mcp_tool(title="Mark")(lambda: 1)
    for line, priority in (("f", 0), ("f --priority 1", 1)):
        (tool,) = names(shell, line)
        assert (tool.options.title, tool.options.priority) == ("Mark", priority)
    shell.user_ns["g"] = mcp_prompt(title="Mark", timeout=3)(lambda: "g")
    (prompt,) = names(shell, "g --title Line", "prompt")
    assert (prompt.info.kind, prompt.info.title, prompt.options.time_limit) == ("prompt", "Line", 3)


def test_the_line_says_what_a_function_is_that_is_decorated_as_something_else(shell):
    shell.user_ns["f"] = mcp_tool(title="Mark")(lambda: 1)
    shell.user_ns["g"] = mcp_prompt(title="Mark")(lambda: "g")
    (prompt,), (tool,) = names(shell, "f", "prompt"), names(shell, "g --read-only")
    assert (prompt.info.kind, prompt.info.title) == ("prompt", None)
    assert (tool.info.kind, tool.info.title, tool.options.read_only) == ("tool", None, True)


def _one():
    """One."""
    return 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Which functions?"),
        ("x", "`x` is not offered as a tool: 'x' is not a function, but of type int"),
        ("x missing", "\n`missing` is not offered as a tool: `missing` is not defined"),
        ("f g --timeout soon", "`timeout` must be a time"),
        ("f g --name x", "`--name` describes a single tool, but there are 2 here: f, g"),
        ("f --prefix x", "use `--name`"),
    ],
)
def test_names_that_cannot_be_tools_are_refused_in_a_sentence(shell, line, said):
    shell.user_ns.update(f=_one, g=_one, x=1)
    with pytest.raises(DefinitionError) as caught:
        names(shell, line)
    assert said in str(caught.value)
    assert str(caught.value).count(said) == 1


def test_of_several_functions_those_that_can_be_tools_are_and_each_other_is_refused_alone(shell):
    """The bad ones stand first, between and last."""
    shell.user_ns.update(f=_one, g=_one, number=1, δ=_one, statistics=statistics)
    line = "missing f number statistics.mean δ statistics.mean f g statistics.fmean numpy.mean"
    declared = declare_names(shell, read_line(build_parser(), line, None, str), None)
    assert [tool.name for tool in declared.tools] == ["f", "mean", "g", "fmean"]
    assert list(declared.refusals) == ["missing", "number", "δ", "numpy.mean"]
    for word, sentence in declared.refusals.items():
        assert sentence.startswith(f"`{word}` is not offered as a tool: ")
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("totl", "`total`"),
        ("opens", None),  # IPython's `open`
        ("total_of_al", "`total`"),  # not the number `total_of_all`
        ("numbr", None),
        ("numbr.mean", "`number`"),
        ("_totl", "`total`"),
        ("On", None),  # IPython's `In`
    ],
)
def test_a_misspelt_name_is_corrected_only_to_what_could_be_meant(shell, word, meant):
    shell.user_ns.update(total=_one, total_of_all=3, number=1, _totals=_one)
    with pytest.raises(DefinitionError) as caught:
        names(shell, word)
    assert str(caught.value).endswith(f"it. Did you mean {meant}?" if meant else "it.")


def test_two_objects_tools_of_the_same_name_are_not_both_offered(shell):
    shell.user_ns.update(math=math, cmath=cmath)
    line = read_line(build_parser(), "math.sqrt cmath.sqrt", None, str)
    declared = declare_names(shell, line, None)
    assert [tool.function for tool in declared.tools] == [math.sqrt]
    assert "Two tools would be called `sqrt`" in declared.refusals["cmath.sqrt"]


def test_a_tool_that_gets_another_name_replaces_the_one_that_its_decorator_declared(shell):
    shell.user_ns.update(f=_one, g=lambda: 2)
    existing = names(shell, "f") + names(shell, "g")
    renamed = names(shell, "f --name other")
    assert find_replaced_names(renamed, existing) == ["f"]
    assert find_replaced_names(names(shell, "f"), existing) == []
