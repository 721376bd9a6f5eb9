"""A cell's tools are what its last run declares, where the frontend says which cell it runs."""

import pytest
from live import Link, live_kernel, record_of, tools_of

from mcp_notebook.wire import messages

CLASS = """
from mcp_notebook import mcp_tool, mcp_tools
@mcp_tools(prefix='f')
class C:
    @mcp_tool
    def g(self): 'It.'
"""
FUNCTION = "%%mcp_tool\ndef {}():\n    'It.'"


def cell_of(*names):
    return "from mcp_notebook import mcp_tool\n" + "".join(
        f"@mcp_tool\ndef {name}():\n    'It.'\n" for name in names
    )


@pytest.mark.smoke
def test_a_function_that_is_renamed_in_its_cell_leaves_no_tool_of_its_old_name(kernel):
    kernel.ok(FUNCTION.format("tool_v1"), cell="a")
    output = kernel.ok(FUNCTION.format("tool_v2"), cell="a")
    assert list(tools_of(kernel)) == ["tool_v2"]
    assert "`tool_v1` is gone: this cell no longer declares it." in output.stdout
    assert "`tool_v1`" not in kernel.ok(FUNCTION.format("tool_v2"), cell="a").stdout
    with Link(record_of(kernel)) as link:
        missing = link.welcome.missing["tool_v1"]
    assert (missing.reason, missing.new_name) == ("Its cell now declares `tool_v2`.", "tool_v2")


@pytest.mark.parametrize(
    "suffix", ["", pytest.param(CLASS, marks=pytest.mark.slow)], ids=["function", "class"]
)
def test_what_was_decorated_before_the_extension_was_loaded_belongs_to_its_cell(home, suffix):
    with live_kernel(home) as kernel:
        kernel.ok(cell_of("tool_v1") + suffix, cell="a")
        kernel.ok("%load_ext mcp_notebook", cell="b")
        kernel.ok(cell_of("tool_v2"), cell="a")
        assert list(tools_of(kernel)) == ["tool_v2"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (cell_of("f", "g"), cell_of("g")),
        (cell_of("f", "g"), "%mcp_tool g"),
        ("def f(): 'It.'\ndef g(): 'It.'\n%mcp_tool f g", "%mcp_tool g"),
        ("%%mcp_tool f()\n1", "%%mcp_tool g()\n1"),
        ("%%mcp_tool --name f\ndef g(): 'It.'", "%%mcp_tool\ndef g(): 'It.'"),
        (cell_of("f"), "%%capture\n" + cell_of("g")),
        (cell_of("f"), "import asyncio\nawait asyncio.sleep(0)\n" + cell_of("g")),
        (
            CLASS,
            cell_of("g"),
        ),
    ],
)
def test_whatever_declares_it(kernel, first, second):
    kernel.ok(first, cell="a")
    kernel.ok(second, cell="a")
    assert list(tools_of(kernel)) == ["g"]


def test_a_cell_that_no_longer_declares_tools_has_none(kernel):
    kernel.ok(cell_of("f", "g"), cell="a")
    output = kernel.ok("'nothing'", cell="a")
    assert tools_of(kernel) == {}
    assert "`f`, `g` are gone: this cell no longer declares them." in output.stdout


def test_a_tool_that_another_cell_has_declared_meanwhile_belongs_to_that_cell(kernel):
    kernel.ok(cell_of("f", "g"), cell="a")
    kernel.ok(cell_of("g"), cell="b")
    kernel.ok(cell_of("h"), cell="a")
    assert list(tools_of(kernel)) == ["g", "h"]
    kernel.ok("1", cell="b")
    assert list(tools_of(kernel)) == ["h"]


def test_a_function_redefined_or_updated_elsewhere_still_belongs_to_the_cell_that_declared_it(
    kernel,
):
    kernel.ok(cell_of("f", "g"), cell="a")
    kernel.ok("def f(n: int): 'New.'", cell="b")
    kernel.ok("from mcp_notebook import registry\nregistry.update('g', title='G')", cell="c")
    assert "n" in tools_of(kernel)["f"].input_schema["properties"]
    kernel.ok(cell_of("h"), cell="a")
    assert list(tools_of(kernel)) == ["h"]


@pytest.mark.parametrize("end", ["1 / 0", "raise KeyboardInterrupt", "await asyncio.sleep(0); 1/0"])
def test_a_cell_that_fails_half_way_loses_nothing(kernel, end):
    kernel.ok("import asyncio\n" + cell_of("f", "g"), cell="a")
    kernel.run(f"{cell_of('g')}\n{end}\n{cell_of('h')}", cell="a")
    kernel.run("%%mcp_tool\ndef broken(:", cell="a")
    assert list(tools_of(kernel)) == ["f", "g"]
    kernel.ok(cell_of("h"), cell="a")
    assert list(tools_of(kernel)) == ["h"]


def test_without_the_cells_id_tools_stay_until_they_are_removed(kernel):
    kernel.ok(FUNCTION.format("f"))
    kernel.ok(FUNCTION.format("g"))
    kernel.ok(FUNCTION.format("h"), cell="a")
    kernel.ok("1")
    assert list(tools_of(kernel)) == ["f", "g", "h"]


def test_what_a_tool_declares_while_a_cell_runs_is_not_the_cells(kernel):
    kernel.ok(cell_of("declare").replace("'It.'", cell_of("f").replace("\n", "\n    ")))
    kernel.ok("%mcp call declare", cell="a")
    kernel.ok("1", cell="a")
    assert list(tools_of(kernel)) == ["declare", "f"]


def test_the_cell_that_loads_the_extension_can_declare_tools(kernel):
    kernel.ok("%unload_ext mcp_notebook\n%load_ext mcp_notebook\n" + cell_of("f"), cell="a")
    kernel.ok(cell_of("g"), cell="a")
    assert list(tools_of(kernel)) == ["g"]


# -- several functions, one name -------------------------------------------------------------------

LOOP = """from mcp_notebook import mcp_tool
for city in ("oslo", "rome"):
    def rain(city: str = city):
        "Rain in a city."
        return city
    {}
"""
DECLARE = 'mcp_tool(name=f"rain_{city}")(rain)'
LINE = 'get_ipython().run_line_magic("mcp_tool", f"rain --name rain_{city}")'
WRAPPED = """from functools import lru_cache, partial, wraps
from mcp_notebook import mcp_tool
def rain(city: str = 'rome'):
    "Rain in a city."
    return city
"""
CACHED = """
for name in ("rain_oslo", "rain_rome"):
    mcp_tool(name=name)(lru_cache(rain))
"""
DECORATED = """
def in_city(name):
    @wraps(rain)
    def other():
        return rain(name)
    del other.__wrapped__
    return other
mcp_tool(name="rain_oslo")(in_city("oslo"))
mcp_tool(name="rain_rome")(in_city("rome"))
"""


@pytest.mark.parametrize(
    "cell",
    [
        LOOP.format(DECLARE),
        LOOP.format(DECLARE) + "del rain, city",
        LOOP.format(f"{DECLARE}; rain = 5"),
        LOOP.format(LINE),
        "%%capture\n" + LOOP.format(DECLARE),
        WRAPPED + CACHED,
        WRAPPED.replace("def rain", '@mcp_tool(name="rain_oslo")\ndef rain')
        + 'mcp_tool(name="rain_rome")(lru_cache(rain))',
        WRAPPED + DECORATED,
    ],
    ids=["loop", "deleted", "rebound", "line", "captured", "lru_cache", "of a tool", "wraps"],
)
def test_functions_of_one_name_that_a_cell_declares_under_several_all_stay_tools(kernel, cell):
    output = kernel.ok(cell, cell="a")
    assert list(tools_of(kernel)) == ["rain_oslo", "rain_rome"]
    assert output.stderr == ""
    kernel.ok("1", cell="b")
    kernel.ok("%reload_ext mcp_notebook", cell="b")
    kernel.ok("1", cell="c")
    assert list(tools_of(kernel)) == ["rain_oslo", "rain_rome"]
    if "lru_cache" not in cell or "wraps(rain)" in cell:
        assert kernel.ok("%mcp call rain_oslo").stdout.strip() == "oslo"
        assert kernel.ok("%mcp call rain_rome").stdout.strip() == "rome"
    kernel.ok("1", cell="a")
    assert tools_of(kernel) == {}


def test_of_several_declarations_of_one_name_in_a_cell_the_author_hears_that_the_last_one_stays(
    kernel,
):
    output = kernel.ok(LOOP.format("mcp_tool(rain)"), cell="a")
    assert list(tools_of(kernel)) == ["rain"]
    assert "This cell declares `rain` more than once, and only the last one is" in output.stderr
    assert output.stderr.count("rain") == 1
    output = kernel.ok(cell_of("f", "f"), cell="b")
    assert "This cell declares `f` more than once" in output.stderr


def test_a_name_that_another_cell_has_declared_is_told_and_a_cell_that_runs_again_is_not(kernel):
    for _ in range(2):
        assert kernel.ok(cell_of("f"), cell="a").stderr == ""
    output = kernel.ok(cell_of("f"), cell="b")
    assert output.stderr.startswith("`f` replaces the tool of that name from another cell")
    assert kernel.ok(cell_of("f"), cell="b").stderr == ""
    assert kernel.ok("%mcp_tool f", cell="c").stderr == ""
    assert "`f` replaces the tool of that name" in kernel.ok(FUNCTION.format("f"), cell="d").stderr
    assert list(tools_of(kernel)) == ["f"]


def test_a_tool_that_goes_because_its_function_is_declared_under_another_name_is_told(kernel):
    kernel.ok("from mcp_notebook import mcp_tool\n@mcp_tool(name='one')\ndef f(): 'F.'", cell="a")
    output = kernel.ok("@mcp_tool(name='two')\ndef f(): 'F.'", cell="b")
    assert list(tools_of(kernel)) == ["two"]
    assert "The tool 'one' is gone: `f` now offers `two`." in output.stderr


METHODS = """from functools import wraps
from mcp_notebook import mcp_tool
class Model:
    def fit(self, n: int): 'Fit.'
    @staticmethod
    def load(n: int):
        'Load.'
        return n
"""


def test_a_method_outside_of_its_class_is_told_what_it_needs_and_a_static_one_is_a_tool(kernel):
    kernel.ok(METHODS)
    output = kernel.ok("mcp_tool(Model.fit)")
    assert "`Model.fit` is a method, so it becomes a tool with its object" in output.stderr
    assert "`%mcp_tool model`" in output.stderr
    assert tools_of(kernel) == {}
    assert kernel.ok("mcp_tool(Model.load)").stderr == ""
    assert kernel.ok("%mcp call load n=3").stdout.strip() == "3"
    kernel.ok("model = Model()\n%mcp_tool model")
    assert list(tools_of(kernel)) == ["load", "fit"]
    kernel.ok("@mcp_tool(name='fast')\n@wraps(Model.fit)\ndef f(n: int): 'F.'")
    assert "fast" in tools_of(kernel)


# -- deleted cells, which JupyterLab and Notebook 7 report with the next run -----------------------


def test_a_tool_whose_cell_was_deleted_stays_and_the_next_cell_says_how_to_remove_it(kernel):
    kernel.ok(FUNCTION.format("tool_v1"), cell="a")
    said = (
        "The cell of `tool_v1` was deleted. Clients still see the tool; `del tool_v1` removes it."
    )
    assert kernel.ok("1", cell="b", deleted=["a"]).stderr == f"{said}\n"
    assert kernel.ok("1", cell="b", deleted=[]).stderr == ""
    assert said in kernel.ok("%mcp status", cell="b", deleted=[]).text
    assert list(tools_of(kernel)) == ["tool_v1"]
    kernel.ok("del tool_v1", cell="b", deleted=[])
    assert "was deleted. Clients" not in kernel.ok("%mcp status", cell="b", deleted=[]).text


def test_a_cell_whose_deletion_was_undone_has_its_tools_when_it_runs_again(kernel):
    kernel.ok(FUNCTION.format("tool_v1"), cell="a")
    kernel.ok("1", cell="b", deleted=["a", 3])
    kernel.ok(FUNCTION.format("tool_v1"), cell="a", deleted=[])
    assert "Problems" not in kernel.ok("%mcp status", cell="b", deleted=[]).text


def test_several_tools_of_deleted_cells_are_removed_by_one_line(kernel):
    kernel.ok(FUNCTION.format("tool_v1"), cell="a")
    kernel.ok(FUNCTION.format("tool_v2"), cell="d")
    said = kernel.ok("1", cell="b", deleted=["a", "d"]).stderr
    assert said == (
        "The cells of `tool_v1`, `tool_v2` were deleted. Clients still see the tools; "
        "`del tool_v1, tool_v2` removes them.\n"
    )


def test_a_side_panel_says_it_in_place_of_the_cell_and_removes_the_tool(kernel):
    kernel.ok(FUNCTION.format("tool_v1"), cell="a")
    with Link(record_of(kernel)) as page:
        page.send(messages.WatchNotebook())
        assert not page.receive().tools[0].cell_deleted
        assert kernel.ok("pass", cell="b", deleted=["a"]).text.strip() == ""
        states = page.receive_until(lambda message: message.tools)
        assert states[-1].tools[0].cell_deleted
        page.send(messages.RemoveTool(id=7, tool="tool_v1"))
        answers = page.receive_until(lambda message: isinstance(message, messages.PanelAnswer))
        assert answers[-1].message == "Removed tool_v1. Its function is still defined."
        page.send(messages.RemoveTool(id=8, tool="tool_v1"))
        answers = page.receive_until(lambda message: isinstance(message, messages.PanelAnswer))
        assert answers[-1].is_error
    assert tools_of(kernel) == {}
