import time

import pytest

from mcp_notebook.discovery.departures import KEEP
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.dropped_tools import Drop, DroppedTools
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


@pytest.fixture
def dropped():
    return DroppedTools()


def tool(name, description="It."):
    return make_tool(lambda: None, ToolOptions(name=name, description=description))


def in_cell(registry, *names):
    """Run the cell "a" of a notebook, which declares tools of these names."""
    new = [name for name in names if registry.get(name) is None]
    for name in names:
        object.__setattr__(made := tool(name), "cell", "a")
        registry.add(made)
    registry.retain("a", names, f"Its cell now declares {', '.join(names)}.", new)


def test_what_became_of_a_tool_is_forgotten_after_some_minutes():
    now = time.time()
    dropped = DroppedTools(clock=lambda: now)
    dropped.update([Drop([tool("new")], "It went.")], {})
    now -= KEEP + 1
    dropped.update([Drop([tool("old")], "It went.")], {})
    assert list(dropped.read()) == ["new"]
    dropped.update([], {})
    assert list(dropped._entries) == ["new"]


def test_a_tool_that_is_renamed_twice_is_called_by_its_last_name():
    registry = ToolRegistry(lambda: None)
    for name in ("v1", "v2", "v3"):
        in_cell(registry, name)
    assert {name: registry.find_new_name(it) for name, it in registry.dropped.items()} == {
        "v1": "v3",
        "v2": "v3",
    }
    in_cell(registry, "v1")
    assert {name: it.new_name for name, it in registry.dropped.items()} == {"v2": "v1", "v3": "v1"}


def test_what_became_of_the_last_name_became_of_all():
    registry = ToolRegistry(lambda: None)
    for name in ("v1", "v2"):
        in_cell(registry, name)
    registry.remove("v2", reason="It was removed.")
    assert {it.reason for it in registry.dropped.values()} == {"It was removed."}
    assert {registry.find_new_name(it) for it in registry.dropped.values()} == {None}


def test_the_reason_of_a_cells_last_run_replaces_those_of_its_earlier_runs():
    registry = ToolRegistry(lambda: None)
    for names in (["f", "g"], ["g"], ["g", "h"]):
        in_cell(registry, *names)
    (dropped,) = registry.dropped.values()
    assert dropped.reason == "Its cell now declares g, h."


@pytest.mark.parametrize(
    ("new_tools", "new_name"),
    [
        ([tool("g")], "g"),
        ([tool("g"), tool("h", "That.")], "g"),
        ([tool("g"), tool("h")], None),
        ([tool("h", "That.")], None),
    ],
)
def test_the_one_new_tool_with_its_description_and_schema_is_the_same_tool(
    dropped, new_tools, new_name
):
    dropped.update([Drop([tool("f")], "It went.", new_tools=new_tools)], {})
    assert dropped.read()["f"].new_name == new_name


def test_tools_that_nothing_describes_are_not_the_same(dropped):
    dropped.update([Drop([tool("f", "")], "It went.", new_tools=[tool("g", "")])], {})
    assert dropped.read()["f"].new_name is None
