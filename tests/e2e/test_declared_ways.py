"""Every way to declare gives the same kind of tool: as an MCP client of each era sees and calls it.

One kernel declares them all; one connection for each era reads and calls them, and sees what
redefinition and deletion do.
"""

from dataclasses import dataclass, field

import anyio
import pytest
from clients import ONE_ERA, connected, text_of, tool_kernel
from listing import list_tools

MODULE = """
from mcp_notebook import mcp_tool

@mcp_tool(title="From a module")
def of_module(n: int = 1) -> int:
    "Of a module."
    return n
"""
CELLS = (
    f"open('declared.py', 'w').write({MODULE!r})",
    """
import asyncio, functools, statistics
from typing import Annotated
import matplotlib.pyplot as plt
from pydantic import Field
from mcp_notebook import Context, mcp_tool, mcp_tools
data = [3, 1, 2]
""",
    "%%mcp_tool\ndef of_cell(n: int = 1) -> int:\n    'Of a cell.'\n    return n",
    """\
%%mcp_tool --title 'Plot of a city' plot_city(city: str = 'Seattle', year: Annotated[int, \
Field(ge=2010)] = 2012) -> str --timeout 30s
# Plots a city.
#
# Args:
#     city: Which one.
data = sorted(data)
print('printed', data)
plt.plot(data)
plt.show()
f'{city} {year}'
""",
    "%%mcp_tool waits(ctx: Context, n: int)\n'Waits.'\nawait asyncio.sleep(0)\nn + 1",
    "%%mcp_tool fails(n: int)\n'Fails.'\ny = n\n1 / 0",
    """
class Model:
    def __init__(self, factor):
        self.factor = factor
    def predict(self, x: float) -> float:
        "Predicts."
        return x * self.factor
    def __call__(self, x: float) -> float:
        "Calls."
        return -x

model = Model(2)
half = functools.partial(model.predict, x=0.5)
""",
    "%mcp_tool model.predict model half statistics.median",
    """
@mcp_tool
def decorated(n: int = 1) -> int:
    "Decorated."
    return n

@mcp_tool(name='other', description='Said.')
def named():
    "Not said."
""",
    "import declared",
)
COUNTER = """
@mcp_tools(prefix="count_")
class Counter:
    def __init__(self):
        self.total = 0
    @mcp_tool
    def add(self, n: int) -> int:
        "Adds."
        self.total += n
        return self.total
    @mcp_tool(title="Now")
    def now(self) -> int:
        "Tells."
        return self.total
"""
ALL = [
    *("of_cell", "plot_city", "waits", "fails", "predict", "model", "half", "median"),
    *("decorated", "other", "of_module", "count_add", "count_now"),
]


@dataclass
class Seen:
    """What a client was told and answered."""

    tools: dict = field(default_factory=dict)
    redefined: list = field(default_factory=list)
    deleted: list = field(default_factory=list)
    results: dict = field(default_factory=dict)


@pytest.fixture(scope="module")
def notebook(module_home):
    with tool_kernel(module_home, *CELLS) as kernel:
        yield kernel


@pytest.fixture(scope="module", params=ONE_ERA)
def seen(request, notebook):
    notebook.ok(COUNTER)
    return anyio.run(_see, notebook, request.param)


async def _see(notebook, era):
    seen = Seen()
    async with connected(notebook.home, era, "stdio") as client:
        seen.tools = {tool.name: tool for tool in await list_tools(client)}
        for key, name, arguments in (
            ("plot_city", "plot_city", {"year": 2015}),
            ("too_early", "plot_city", {"year": 2000}),
            ("waits", "waits", {"n": 1}),
            ("fails", "fails", {"n": 1}),
            ("predict", "predict", {"x": 3}),
            ("model", "model", {"x": 3}),
            ("half", "half", {}),
            ("median", "median", {"data": [1, 5, 2]}),
            ("of_cell", "of_cell", {"n": 4}),
            ("decorated", "decorated", {"n": 4}),
            ("of_module", "of_module", {"n": 4}),
            ("add_1", "count_add", {"n": 1}),
            ("add_2", "count_add", {"n": 2}),
            ("now", "count_now", {}),
        ):
            seen.results[key] = await client.call_tool(name, arguments)

        async def names_after(cell, wanted):
            """Run a cell, and return the names of the tools when the client sees the change."""
            await anyio.to_thread.run_sync(notebook.ok, cell)
            with anyio.fail_after(60):
                while not wanted(names := [tool.name for tool in await list_tools(client)]):
                    pass
            return names

        await anyio.to_thread.run_sync(notebook.ok, "model = Model(10)")
        seen.results["predict_10"] = await client.call_tool("predict", {"x": 3})
        await anyio.to_thread.run_sync(notebook.ok, "model = Model(2)")
        again = COUNTER.replace("def now", "def later")
        seen.redefined = await names_after(again, lambda names: "count_later" in names)
        seen.deleted = await names_after("del Counter", lambda names: "count_add" not in names)
    return seen


@pytest.mark.smoke
def test_every_way_gives_a_tool_in_the_order_of_declaration(seen):
    assert list(seen.tools) == ALL


def test_a_call_reaches_what_was_declared(seen):
    said = {
        "predict": "6.0",
        "model": "-3.0",
        "half": "1.0",
        "median": "2",
        "of_cell": "4",
        "decorated": "4",
        "of_module": "4",
        "add_1": "1",
        "add_2": "3",
        "now": "3",
        "predict_10": "30.0",
    }
    results = {key: seen.results[key] for key in said}
    assert [key for key, result in results.items() if result.is_error] == []
    assert {key: text_of(result) for key, result in results.items()} == said
