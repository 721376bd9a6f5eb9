"""Values that clients suggest for an argument, and the option that says where they come from."""

from types import SimpleNamespace
from typing import Literal

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.completion import MAX_VALUES, SECONDS, complete_argument
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import PromptOptions
from mcp_notebook.wire import messages


def declare(**complete):
    def prompt(column: str, kind: Literal["bar", "line", "scatter"] = "bar") -> str:
        """Draw."""
        return f"{kind} of {column}"

    return make_tool(prompt, PromptOptions(complete=complete))


def complete(argument, value, tool=None, namespace=None, *, seconds=SECONDS, **known):
    tool = tool or declare()
    request = messages.Complete(1, "prompt", argument, value, known)
    source = tool.options.completions.get(argument)
    return complete_argument(request, tool.info, source, namespace or {}, seconds=seconds)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ["bar", "line", "scatter"]),
        ("s", ["scatter"]),
        ("A", ["bar", "scatter"]),
        ("tt", ["scatter"]),
        ("x", []),
    ],
)
def test_values_that_begin_with_the_text_come_before_those_that_contain_it(value, expected):
    assert complete("kind", value) == (expected, len(expected))


def test_a_name_is_looked_up_each_time_and_what_a_client_sends_never_is():
    tool, frame = declare(column="frame.columns"), SimpleNamespace(columns=["a", "b"])
    assert complete("column", "", tool, {"frame": frame})[0] == ["a", "b"]
    frame.columns = ["c", 1, None]
    assert complete("column", "", tool, {"frame": frame})[0] == ["c", "1", "None"]
    assert complete("column", "frame.columns", tool, {"frame": frame})[0] == []


@pytest.mark.parametrize(
    "source", [["x", "y"], ("x", "y"), lambda: ["x", "y"], lambda known: [known["a"], "y"]]
)
def test_lists_and_functions_give_values(source):
    assert complete("column", "", declare(column=source), a="x") == (["x", "y"], 2)


def test_a_long_list_says_how_long_it_is():
    values, total = complete("column", "", declare(column=range(1_000)))
    assert (len(values), total) == (MAX_VALUES, 1_000)


def test_endless_values_and_slow_functions_end():
    values, _ = complete("column", "", declare(column=lambda: iter(int, 1)))
    assert values == ["0"]
    with pytest.raises(BaseException, match=r"0\.1"):
        complete("column", "", declare(column=_wait_forever), seconds=0.1)


def _wait_forever():
    while True:
        pass


@pytest.mark.parametrize(
    ("complete", "words"),
    [
        ({"colunm": ["a"]}, "did you mean 'column'"),
        ({"other": ["a"]}, "it has column, kind"),
        ({"column": "df['a']"}, "come from a list, a function or a name"),
        ({"column": "os.system('x')"}, "come from a list, a function or a name"),
        ({"column": 3}, "come from a list, a function or a name"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_when_the_prompt_is_declared(complete, words):
    with pytest.raises(DefinitionError, match=words):
        declare(**complete)
    with pytest.raises(DefinitionError, match="must be a dict"):
        make_tool(lambda: None, PromptOptions(name="p", complete=["a"]))
