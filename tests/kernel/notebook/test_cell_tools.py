"""A cell's tools are what its last run declares, where the frontend says which cell it runs."""

import re

import pytest
from live import Link, live_kernel, record_of, tools_of

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


def test_a_function_that_is_renamed_in_its_cell_leaves_no_tool_of_its_old_name(kernel):
    kernel.ok(FUNCTION.format("tool_v1"), cell="a")
    output = kernel.ok(FUNCTION.format("tool_v2"), cell="a")
    assert list(tools_of(kernel)) == ["tool_v2"]
    assert "`tool_v1` is gone: this cell no longer declares it." in output.stdout
    assert "`tool_v1`" not in kernel.ok(FUNCTION.format("tool_v2"), cell="a").stdout
    with Link(record_of(kernel)) as link:
        missing = link.welcome.missing["tool_v1"]
    assert (missing.reason, missing.new_name) == ("Its cell now declares `tool_v2`.", "tool_v2")


@pytest.mark.parametrize("suffix", ["", CLASS], ids=["function", "class"])
def test_what_was_decorated_before_the_extension_was_loaded_belongs_to_its_cell(home, suffix):
    with live_kernel(home) as kernel:
        kernel.ok(cell_of("tool_v1") + suffix, cell="a")
        kernel.ok("%load_ext mcp_notebook", cell="b")
        kernel.ok(cell_of("tool_v2"), cell="a")
        assert list(tools_of(kernel)) == ["tool_v2"]


def test_who_misses_a_tool_that_was_renamed_twice_is_told_its_last_name(kernel):
    for name in ("tool_v1", "tool_v2", "tool_v3"):
        kernel.ok(FUNCTION.format(name), cell="a")
    status = kernel.ok("%mcp status").stdout
    for name in ("tool_v1", "tool_v2"):
        assert re.search(
            rf"{name}: It was renamed at \d\d:\d\d\. Call 'tool_v3' in its place\.", status
        )
    kernel.ok("1", cell="a")
    with Link(record_of(kernel)) as link:
        reasons = {missing.reason for missing in link.welcome.missing.values()}
    assert reasons == {"Its cell no longer declares it."}


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


def test_a_cell_that_declares_nothing_any_more_has_no_tools(kernel):
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


def test_tools_of_registry_belong_to_no_cell(kernel):
    add = "from mcp_notebook import Tool, registry\nregistry.add(Tool(name='f', handler=lambda: 1))"
    kernel.ok(add, cell="a")
    kernel.ok("1", cell="a")
    assert list(tools_of(kernel)) == ["f"]


def test_what_a_tool_declares_while_a_cell_runs_is_not_the_cells(kernel):
    kernel.ok(cell_of("declare").replace("'It.'", cell_of("f").replace("\n", "\n    ")))
    kernel.ok("%mcp call declare", cell="a")
    kernel.ok("1", cell="a")
    assert list(tools_of(kernel)) == ["declare", "f"]


def test_the_cell_that_loads_the_extension_can_declare_tools(kernel):
    kernel.ok("%unload_ext mcp_notebook\n%load_ext mcp_notebook\n" + cell_of("f"), cell="a")
    kernel.ok(cell_of("g"), cell="a")
    assert list(tools_of(kernel)) == ["g"]


@pytest.mark.parametrize("inner", ["", "'inner'", "%mcp_tool g"])
def test_a_cell_inside_a_cell_is_part_of_it(kernel, inner):
    kernel.ok(cell_of("f", "g"), cell="a")
    kernel.ok(f"%mcp_tool f\nget_ipython().run_cell({inner!r})\n%mcp_tool g", cell="a")
    assert list(tools_of(kernel)) == ["f", "g"]
