"""The magics in a real kernel: what they show, what they say about wrong input."""

import re

import pytest
from live import Link, record_of, text_of, tools_of

from mcp_notebook.text.wording import strip_escapes


def traceback_of(kernel, code):
    """Run a cell that fails, and return what the notebook shows of it, without colours."""
    request = kernel.start(code)
    lines = kernel.wait_for("error")["traceback"]
    kernel.finish(request)
    return strip_escapes("\n".join(lines))


@pytest.mark.smoke
def test_a_cell_of_functions_becomes_tools_in_order_without_its_helpers(kernel):
    kernel.ok("%%mcp_tool\ndef b(): 'B.'\ndef _helper(): ...\nasync def a(): 'A.'\nclass C: ...")
    assert list(tools_of(kernel)) == ["b", "a"]


def test_the_card_shows_name_signature_description_parameters_and_warnings(kernel, rain_cell):
    (shown,) = kernel.ok(rain_cell).displays
    assert "MCP tool rain(city: Literal[" in shown["text/plain"]
    for part in ("rain", "Rain per year.", "Seattle", "2012"):
        assert part in shown["text/plain"]
        assert part in shown["text/html"]
    assert "Where." in shown["text/html"]
    (shown,) = kernel.ok("%%mcp_tool\ndef bare(x): pass").displays
    assert shown["text/plain"].count("Warning") == 2  # no docstring, no type hint


def test_the_last_expression_of_a_tool_cell_is_shown(kernel):
    output = kernel.ok("%%mcp_tool\ndef one(): 'One.'\n1 + 1")
    assert {"text/plain": "2"} in output.displays


def test_an_error_in_a_tool_cell_is_the_cells_error_and_declares_nothing(kernel):
    output = kernel.run("%%mcp_tool\ndef one(): 'One.'\n1 / 0")
    assert output.error.startswith("ZeroDivisionError")
    assert tools_of(kernel) == {}


def test_a_syntax_error_points_at_the_cells_own_line(kernel):
    output = kernel.run("%%mcp_tool\ndef one(): 'One.'\n\ndef two(:\n    pass")
    assert "SyntaxError" in output.error
    assert "line 4" in output.error


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%mcp_tool\ndef one(): 'One.'\n\ndef two(:\n    pass", 4),
        ("%%mcp_tool\ndef one(): 'One.'\nreturn 3", 3),
        ("%%mcp_tool f(a, b=)\na", 1),
        ("%%mcp_tool f(a)\nx = = 1", 2),
    ],
)
def test_a_syntax_error_is_shown_as_that_of_any_cell(kernel, cell, line):
    shown = traceback_of(kernel, cell).strip()
    assert re.match(rf"Cell In ?\[\d+\], line {line}\n", shown)
    assert shown.count("line") == 1
    assert ".py" not in shown


def test_a_definition_error_of_a_decorator_is_one_sentence(kernel):
    shown = traceback_of(
        kernel, "from mcp_notebook import mcp_tool\n@mcp_tool(nam='x')\ndef f(): 1"
    )
    assert shown == "DefinitionError: `@mcp_tool` has no option `nam`. Did you mean `name`?"


def test_a_traceback_shows_the_cell_by_its_own_number_and_no_frames_of_ours(kernel):
    shown = traceback_of(kernel, "%%mcp_tool\ndef one(): 'One.'\n1 / 0")
    numbers = re.findall(r"In ?\[(\d+)\]", shown)
    assert len(numbers) > 1  # the magic's line, and the line that fails
    assert len(set(numbers)) == 1
    assert "magics.py" not in shown


@pytest.mark.parametrize(
    "above", ["# Rain.", "import math", "%load_ext mcp_notebook", "# a\n\n# b"]
)
@pytest.mark.parametrize("line", ["%%mcp_tool", "%%mcp_tool --name x", "%%mcp_tool f(a: int = 3)"])
def test_below_another_line_the_magic_says_where_it_belongs(kernel, above, line):
    kernel.ok("f = None; del f")
    output = kernel.run(f"{above}\n{line}\ndef f(): 'F.'")
    assert output.error.startswith("UsageError: `%%mcp_tool` must be the first line of its cell")
    assert tools_of(kernel) == {}
    assert "NameError" in kernel.run("f").error


def test_the_first_line_may_follow_empty_lines_and_other_cell_magics(kernel):
    kernel.ok("\n\n%%mcp_tool\ndef f(): 'F.'")
    kernel.ok("%%capture\n%%mcp_tool\ndef g(): 'G.'")
    assert list(tools_of(kernel)) == ["f", "g"]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%mcp_tool\nx = 1", "defines no function"),
        ("%%mcp_tool\ndef _f(): ...", "defines no function"),
        ("%%mcp_tool\ndef f(): ...\ndef f(): ...", "defines `f` twice"),
        ("%%mcp_tool --name x\ndef f(): ...\ndef g(): ...", "a single tool"),
        ('%%mcp_tool --name "my tool"\ndef f(): ...', "my_tool"),
        ("%%mcp_tool --nam x\ndef f(): ...", "no option `--nam`. Did you mean `--name`?"),
        (
            "%%mcp_tool --examples x\ndef f(): ...",
            "in Python: `@mcp_tool(examples=...)`",
        ),
        ("%%mcp_tool --name ''\ndef f(): ...", "cannot be a tool's name"),
        ("%%mcp_tool\nclass C: ...", "under `@mcp_tools` needs no magic"),
        ("%%mcp_tool --timeout soon\ndef f(): ...", "`timeout` must be a time"),
        ("%%mcp_tool --prefix x\ndef f(): ...", "`--prefix` is for `%mcp_tool obj`"),
        ("%%mcp_tool f(a) g(b)\na", "Only options can stand beside the signature of `f`"),
        ("%%mcp_tool f\n1 + 1", "`%%mcp_tool f()`"),
        ("%%mcp_tool f(**a)\na", "`**a`"),
        ("%%mcp_tool f(a: 'Missing')\na", "uses `Missing`, which is not defined"),
        ("%%mcp_tool f(a: int = 'x')\na", "the default of `a`"),
        (
            "%%mcp_tool --destructive --non-destructive\ndef f(): ...",
            "`--destructive` and `--non-destructive` contradict each other: remove one of them",
        ),
        (
            "%%mcp_tool --task-only --task\ndef f(): ...",
            "`--task` and `--task-only` contradict each other: remove one of them",
        ),
        ("%%mcp_tool --read-only --destructive\ndef f(): ...", "cannot be both"),
        ("%%mcp_tool --icon none.png\ndef f(): ...", "'none.png' cannot be read"),
        ("%%mcp_tool --priority nan\ndef f(): ...", "`priority` must be a number"),
        ("%%mcp_tool f\ndef f(): ...", "%mcp_tool f g"),
        ("%mcp_tool", "Which functions?"),
        ("%mcp_tool missing", "`missing` is not defined"),
        ("x = 1\n%mcp_tool x", "'x' is not a function, but of type int"),
    ],
)
def test_wrong_input_gets_one_sentence_that_says_what_to_do(kernel, cell, said):
    output = kernel.run(cell)
    assert output.error is not None
    assert output.error.startswith("UsageError")
    assert said in output.error
    assert tools_of(kernel) == {}


@pytest.mark.parametrize(
    "cell",
    [
        "def good(): 'Good.'\ndef bad(x: int = 'a'): 'Bad.'\n%mcp_tool bad good",
        "%%mcp_tool\ndef bad(x: int = 'a'): 'Bad.'\ndef good(): 'Good.'",
    ],
)
def test_a_function_that_cannot_be_a_tool_hides_no_other_and_is_told_last(kernel, cell):
    output = kernel.run(cell, cell="1")
    assert output.error is None
    assert list(tools_of(kernel)) == ["good"]
    (sentence,) = output.stderr.splitlines()
    assert sentence.startswith("`bad` is not offered as a tool: the default of `x`")


def test_an_older_tool_goes_when_its_function_cannot_be_one_any_more(kernel):
    cell = "%%mcp_tool\ndef f(): 'F.'\ndef g(): 'G.'"
    kernel.run(cell, cell="1")
    output = kernel.run(cell.replace("f()", "f(x: int = 'a')"), cell="1")
    assert list(tools_of(kernel)) == ["g"]
    assert "The tool `f` is gone" in output.stdout
    assert "`f` is not offered as a tool" in output.stderr


@pytest.mark.smoke
def test_the_decorator_declares_in_any_cell(kernel):
    kernel.ok(
        "from mcp_notebook import mcp_tool\n@mcp_tool\ndef one(): 'One.'\n"
        "@mcp_tool(name='zwei', title='Two')\ndef two(): 'Two.'\nprint(one.__name__)"
    )
    assert list(tools_of(kernel)) == ["one", "zwei"]
    assert tools_of(kernel)["zwei"].title == "Two"


def test_functions_decorated_before_the_extension_was_loaded_become_tools(kernel):
    kernel.ok("%unload_ext mcp_notebook")
    kernel.ok("from mcp_notebook import mcp_tool\n@mcp_tool\ndef early(): 'Early.'")
    kernel.ok("%load_ext mcp_notebook")
    assert list(tools_of(kernel)) == ["early"]


def test_a_cell_becomes_a_tool_that_the_notebook_has_too(kernel):
    (shown,) = kernel.ok("%%mcp_tool twice(n: int = 2)\n# Twice.\nprint('ran')\nn * 2").displays
    assert shown["text/plain"].startswith("MCP tool twice(n: int = 2)\n    Twice.")
    output = kernel.ok("print(twice(4))")
    assert output.stdout == "ran\n8\n"
    kernel.ok("def twice(word: str): 'Two words.'; return word * 2")
    assert "word" in tools_of(kernel)["twice"].input_schema["properties"]
    kernel.ok("del twice")
    assert tools_of(kernel) == {}


COUNTER = """from mcp_notebook import mcp_tool, mcp_tools
@mcp_tools{}
class Counter:
    total = 0
    @mcp_tool
    def add(self, n: int) -> int:
        'Add.'
        self.total += n
        return self.total
    @mcp_tool
    def clear(self) -> None:
        'Clear.'
        self.total = 0
"""


def test_a_class_of_tools_follows_its_cell(kernel):
    kernel.ok(COUNTER.format(""))
    assert list(tools_of(kernel)) == ["add", "clear"]
    kernel.ok("%mcp call add n=3\n%mcp call add n=4")
    assert kernel.ok("print(Counter.mcp_instance.total)").stdout == "7\n"
    kernel.ok(COUNTER.format("").replace("def clear", "def reset"))
    assert list(tools_of(kernel)) == ["add", "reset"]
    assert kernel.ok("%mcp call add n=1").stdout.strip() == "1"
    kernel.ok(COUNTER.format("(prefix='c_')"))
    assert list(tools_of(kernel)) == ["c_add", "c_clear"]
    kernel.ok("del Counter")
    assert tools_of(kernel) == {}


def test_marked_methods_become_tools_only_with_an_object(kernel):
    kernel.ok(COUNTER.format("").replace("@mcp_tools", ""))
    assert tools_of(kernel) == {}
    assert "`%mcp_tool counter`" in kernel.run("%mcp_tool Counter").error
    kernel.ok("counter = Counter()\n%mcp_tool counter --prefix c-")
    assert list(tools_of(kernel)) == ["c-add", "c-clear"]
    output = kernel.ok("counter = 5")
    assert "The tools 'c-add', 'c-clear' are gone" in output.stderr


def test_a_class_decorated_before_the_extension_was_loaded_is_taken_up_once(kernel):
    kernel.ok("%unload_ext mcp_notebook")
    kernel.ok(COUNTER.format("") + "Alias = Counter\nCounter.mcp_instance.add(4)")
    kernel.ok("%load_ext mcp_notebook")
    assert list(tools_of(kernel)) == ["add", "clear"]
    assert kernel.ok("%mcp call add n=1").stdout.strip() == "5"


def test_a_class_of_tools_in_a_module_is_replaced_when_the_module_is_loaded_anew(kernel):
    kernel.ok(f"open('counting.py', 'w').write({COUNTER.format('')!r})\nimport counting")
    kernel.ok("del counting")
    assert list(tools_of(kernel)) == ["add", "clear"]
    changed = COUNTER.format("").replace("def clear", "def now_reset")
    kernel.ok(
        f"open('counting.py', 'w').write({changed!r})\nimport importlib, sys\n"
        "importlib.reload(sys.modules['counting'])"
    )
    assert list(tools_of(kernel)) == ["add", "now_reset"]


def test_redefinition_replaces_and_keeps_the_order(kernel):
    kernel.ok("%%mcp_tool\ndef a(): 'A.'\ndef b(): 'B.'")
    kernel.ok("%%mcp_tool\ndef a(x: int): 'Another.'")
    assert list(tools_of(kernel)) == ["a", "b"]
    assert "x" in tools_of(kernel)["a"].input_schema["properties"]


@pytest.mark.parametrize(
    "value",
    [
        "unittest.mock.MagicMock()",
        "type('Proxy', (), {'__getattr__': lambda self, name: self, '__call__': lambda self: 1})()",
        "type('Unbound', (), {'__getattribute__': lambda *_: 1 / 0, '__call__': lambda self: 1})()",
    ],
)
def test_a_name_that_gets_a_strange_object_hides_no_other_tool(kernel, value):
    kernel.ok(
        "%%mcp_tool\nimport unittest.mock\ndef strange() -> int:\n    'S.'\n    return 1\n"
        "def other() -> int:\n    'O.'\n    return 1"
    )
    output = kernel.ok(f"strange = {value}\ndef other() -> int:\n    'New.'\n    return 2")
    assert "Error in callback" not in output.text
    assert kernel.ok("%mcp call other").stdout.strip() == "2"


@pytest.mark.smoke
def test_a_tool_follows_its_name_through_ordinary_cells(kernel):
    kernel.ok("%%mcp_tool --name rain\ndef f(): 'First.'\n")
    with Link(record_of(kernel)) as link:
        kernel.ok("def f(x: int = 1):\n    'Second.'\n    return x + 41")
        (tool,) = link.receive().tools
        assert (tool.name, tool.description) == ("rain", "Second.")
        assert text_of(link.call("rain")) == "42"
        kernel.ok("del f")
        assert link.receive().tools == []


def test_a_tool_whose_variable_no_longer_holds_a_function_is_dropped_and_the_user_is_told(kernel):
    kernel.ok("%%mcp_tool\ndef f(): 'F.'")
    output = kernel.ok("f = 5")
    assert "'f' is gone" in output.stderr
    assert tools_of(kernel) == {}


def test_the_line_of_a_decorated_function_says_more_and_makes_no_second_tool(kernel):
    kernel.ok("from mcp_notebook import mcp_tool\n1")
    kernel.ok(
        "%%mcp_tool --title Line\n@mcp_tool(name='both', title='Mark', priority=2)\n"
        "def f() -> int:\n    'F.'\n    return 1"
    )
    (tool,) = tools_of(kernel).values()
    assert (tool.name, tool.title) == ("both", "Line")
    assert tool.meta == {"io.github.mcp-notebook/priority": 2.0}
    kernel.ok(
        "%%mcp_tool --name other\n@mcp_tool(name='both')\ndef f() -> int:\n    'F.'\n    return 1"
    )
    assert list(tools_of(kernel)) == ["other"]


# -- %%mcp_view ------------------------------------------------------------------------------------


def test_a_view_says_who_shows_it_and_what_it_may_load_and_so_does_the_card(kernel):
    cell = "%%mcp_view map --allow tiles.example.org *.a.org\n<b>$x {y} %%z</b>"
    loads = "https://tiles.example.org, https://*.a.org"
    shown = kernel.ok(cell).stdout
    assert shown == f"View `map`: `%%mcp_tool --ui map` shows it; it may load from {loads}.\n"
    (card,) = kernel.ok("%%mcp_tool --ui map\ndef places(): 'Places.'").displays
    assert f"its view may load from {loads}" in card["text/plain"]
    assert loads in card["text/html"]
    assert kernel.ok("%%mcp_view map\n<b></b>").stdout == "View `map`: shown with `places`.\n"
    (card,) = kernel.ok("%%mcp_tool --ui map\ndef places(): 'Places.'").displays
    assert "may load" not in card["text/plain"]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%mcp_view\n<b></b>", "Write `%%mcp_view NAME [--allow HOST ...]`"),
        ("%%mcp_view --allow a.org\n<b></b>", "it begins with the view's name"),
        ("%%mcp_view map other\n<b></b>", "without 'other'"),
        ("%%mcp_view map --alow a.org\n<b></b>", "without '--alow'"),
        ("%%mcp_view map --allow\n<b></b>", "`--allow` needs a value"),
        ("%%mcp_view map --allow a.org/x\n<b></b>", "`allow` must be a list of hosts"),
        ("%%mcp_view my.map\n<b></b>", "cannot be a view's name"),
        ("%%mcp_view map\n \n", "is empty: write its HTML below the line"),
        ("%%mcp_tool --ui chart\ndef f(): ...", "there is no view 'chart'. Run the cell that"),
        ("%%mcp_tool --ui none.html\ndef f(): ...", "There is no file none.html."),
        ("%%mcp_tool --allow a.org\ndef f(): ...", "`allow` is for a page of your own"),
    ],
)
def test_a_wrong_view_is_one_sentence(kernel, cell, said):
    output = kernel.run(cell)
    assert output.error.startswith("UsageError: ")
    assert said in output.error
    assert tools_of(kernel) == {}
