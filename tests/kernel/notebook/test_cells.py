"""A cell under ``%%mcp_tool`` as a function: what its body sees, leaves and answers."""

import asyncio
import inspect
import re
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal_of

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.cells import CellSyntaxError, make_cell_function, run_cell
from mcp_notebook.kernel.notebook.magic_line import read_line
from mcp_notebook.kernel.notebook.magics.magics import McpMagics


def tool(shell, text):
    """Make the function of a cell, given as what follows ``%%mcp_tool``."""
    head, _, body = text.partition("\n")
    line = read_line(McpMagics.mcp_tool.parser, head, body, str)
    return make_cell_function(shell, line.signature, line.head, line.body)


def refusal(shell, text):
    return refusal_of(tool, shell, text)


def test_the_last_expression_is_the_result(shell):
    assert tool(shell, "f(a: int, b: int = 2)\nc = a + b\nc * 10")(1) == 30


@pytest.mark.parametrize("body", ["a;", "a; # quiet", "b = a", "if a:\n    a"])
def test_without_a_last_expression_or_with_a_semicolon_there_is_no_result(shell, body):
    assert tool(shell, f"f(a: int)\n{body}")(1) is None


def test_the_notebooks_variables_are_read_and_never_rebound(shell):
    shell.user_ns["data"] = [1, 2, 3]
    f = tool(shell, "f(n: int)\nnew = 1\ndata = [x for x in data if x > n]\nlen(data)")
    assert (f(1), f(1)) == (2, 2)
    assert shell.user_ns["data"] == [1, 2, 3]
    assert "new" not in shell.user_ns


@pytest.mark.parametrize(
    "body",
    [
        "total += 1",
        "def inner():\n    return total\ntotal = total + 1\ninner()",
        "import total",
        "del total",
        "for total in total, 1: pass",
        "[total := total]",
    ],
)
def test_a_name_that_neither_notebook_nor_body_has_set_is_an_error_of_the_body(shell, body):
    with pytest.raises((NameError, ImportError)):
        tool(shell, f"f()\n{body}")()


@pytest.mark.parametrize(
    "body",
    [
        "exec('total = n * 2')\ntotal",
        "exec('total = n * 2')\nif True:\n    return total",
        "%time total = n * 2\ntotal",
        "globals()['total'] = n * 2\ntotal",
        "locals()['total'] = n * 2\ntotal",
        "exec('total = n'); total: int = total * 2\ntotal",
        "exec('def double(): return n * 2')\n[double() for _ in 'a'][0]",
        "await sleep(0)\nexec('total = n * 2')\ntotal",
    ],
)
def test_names_that_the_body_binds_by_texts_are_found_and_are_the_calls(shell, body):
    shell.user_ns.update(total="the notebook's", sleep=asyncio.sleep, eval="the notebook's")
    f, before = tool(shell, f"f(n: int)\n{body}"), dict(shell.user_ns)
    value = asyncio.run(f(2)) if inspect.iscoroutinefunction(f) else f(2)
    assert value == 4
    assert shell.user_ns == before


@pytest.mark.parametrize("wait", ["", "await sleep(0)"])
def test_a_body_that_yields_may_bind_names_by_texts(shell, wait):
    async def collect(items):
        return [item async for item in items]

    shell.user_ns["sleep"] = asyncio.sleep
    items = tool(shell, f"f(n: int)\nexec('n += 1')\n{wait}\nfor i in range(n):\n    yield i")(2)
    assert (asyncio.run(collect(items)) if wait else list(items)) == [0, 1, 2]


def test_a_parameter_hides_the_notebooks_variable(shell):
    shell.user_ns["city"] = "notebook"
    f = tool(shell, "f(city: str)\ncity = city + '!'\n(lambda: city)()")
    assert f("call") == "call!"


def test_global_says_that_the_notebooks_variable_is_meant(shell):
    tool(shell, "f()\nglobal count\ncount = 1")()
    assert shell.user_ns["count"] == 1


@pytest.mark.parametrize(
    "body",
    [
        "await sleep(0)\n1",
        "async with lock: pass\n1",
        "[x async for x in numbers()]\n1",
        "async for x in numbers(): pass\n1",
        "[await sleep(0) for x in 'ab']\n1",
        "if True:\n    await sleep(0)\n1",
    ],
)
def test_await_in_the_body_makes_it_a_coroutine(shell, body):
    async def numbers():
        yield 1

    shell.user_ns.update(sleep=asyncio.sleep, lock=asyncio.Lock(), numbers=numbers)
    f = tool(shell, f"f()\n{body}")
    assert inspect.iscoroutinefunction(f)
    assert asyncio.run(f()) == 1


def test_the_signature_is_resolved_in_the_notebook_when_the_cell_runs(shell):
    shell.user_ns.update(Size=int, here="Seattle")
    f = tool(shell, 'f(n: Size, at: dict[str, Size] | None = {"a)": (1, 2)}, *, c=here) -> Size\nn')
    shell.user_ns["here"] = "Boston"
    parameters = inspect.signature(f).parameters
    assert parameters["n"].annotation is int
    assert parameters["at"].default == {"a)": (1, 2)}
    assert parameters["c"].default == "Seattle"
    assert inspect.signature(f).return_annotation is int


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ('"""Rain.\n\nArgs:\n    a: Where.\n"""\na', "Rain.\n\nArgs:\n    a: Where.\n"),
        ("# Rain.\n#\n# Args:\n#     a: Where.\na", "Rain.\n\nArgs:\n    a: Where."),
        ("\n\n## Rain\na  # no", "Rain"),
        ('# todo\n"Rain."\na', "Rain."),
        ('f"{a}"\na', None),
        ("a\n# Late.\na", None),
        ("b'Rain'\na", None),
    ],
)
def test_the_first_string_or_comment_is_the_description(shell, body, description):
    assert tool(shell, f"f(a: int)\n{body}").__doc__ == description


def test_a_signature_may_go_over_several_lines_with_options_after_it(shell):
    text = "f(\n    a: int,  # how (many\n    b: str = ')',\n) -> int --title T\na\n1 / 0"
    f = tool(shell, text)
    with pytest.raises(ZeroDivisionError) as caught:
        f(1)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == 6
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "1 / 0"


# IPython runs the program by pexpect, which forks.
@pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")
def test_ipythons_own_syntax_works_and_sees_the_calls_variables(shell, capfd):
    f = tool(shell, "f(word: str)\n%matplotlib?\n!echo {word}\nfiles = !echo $word\nfiles")
    assert f("hello") == ["hello"]
    assert "hello" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("f(a: int, b=)\na", 1, len("%%mcp_tool f(a: int, b=")),
        ("--title 'Ä' f(a, a)\na", 1, len("%%mcp_tool --title 'Ä' f(a, ")),
        ("f(\n  a,\n  b c)\na", 3, None),
        ("f(a)\n\nx = = 1", 3, 5),
        ("f(a)\nbreak", 2, None),
        ("f(a) -> int:\na", 1, None),
    ],
)
def test_a_syntax_error_points_at_the_cells_own_line(shell, text, line, column):
    with pytest.raises(CellSyntaxError) as caught:
        tool(shell, text)
    shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(caught.value._render_traceback_()))
    assert f">:{line}\n" in shown
    assert "SyntaxError" in shown
    assert "cells.py" not in shown
    if column is not None:
        (arrow,) = [row for row in shown.splitlines() if set(row.strip()) == {"^"}]
        assert arrow.index("^") - 4 in (column - 1, column)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plot-city(a)\na", "`plot_city(...)`"),
        ("class(a)\na", "`tool_class(...)`"),
        ("2d(a)\na", "`tool_2d(...)`"),
        ("f(a: Missing)\na", "`f`: the signature uses `Missing`, which is not defined (yet)"),
        ("f(a=missing)\na", "uses `missing`"),
        ("f(a)\n# Only a comment.", "`f` has nothing to run"),
        ("f(a)\n'Only a string.'", "`f` has nothing to run"),
        ("f(a)\n%%time\na", "`%%time` cannot follow `%%mcp_tool`"),
    ],
)
def test_a_cell_that_cannot_be_a_tool_is_refused_in_a_sentence(shell, text, said):
    assert said in refusal(shell, text)
    assert "f" not in shell.user_ns


def test_an_error_of_a_default_is_the_users_own(shell):
    def broken():
        raise NameError("own", name="own")

    shell.user_ns["broken"] = broken
    with pytest.raises(NameError, match="own"):
        tool(shell, "f(a=broken())\na")
    with pytest.raises(ZeroDivisionError):
        tool(shell, "f(a=1 / 0)\na")


def test_a_cell_that_is_refused_runs_nothing(shell):
    with pytest.raises(DefinitionError, match="twice"):
        run_cell(shell, "", "ran = True\ndef f(): ...\ndef f(): ...")
    assert "ran" not in shell.user_ns


def test_a_semicolon_hides_the_last_line_of_a_cell_of_functions(shell, capsys):
    assert run_cell(shell, "", "def f(): ...\n'shown'") == ("f",)
    assert "shown" in capsys.readouterr().out
    assert run_cell(shell, "", "def f(): ...\n'hidden';") == ("f",)
    assert "hidden" not in capsys.readouterr().out


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])))
def test_any_text_is_a_default(shared_shell, text):
    f = tool(shared_shell, f"f(a: str = {text!r}, b=({text!r},)) -> {text!r} --name n\na, b")
    assert f() == (text, (text,))


@pytest.mark.parametrize("body", ["from math import *\nsin(1)", "if True:\n    from math import *"])
def test_a_star_import_is_refused_with_where_to_put_it(shell, body):
    assert "`from math import *` cannot stand in a function" in refusal(shell, f"f()\n{body}")
