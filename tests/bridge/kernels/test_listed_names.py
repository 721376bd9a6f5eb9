"""What kernels are told of the names that clients see."""

import pytest
from kernel_stand_ins import peer, welcome

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.listed_names import find_listed_names
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


def tools(*names):
    return [messages.ToolInfo(name=name, input_schema={"type": "object"}) for name in names]


def test_a_tool_under_its_own_name_is_not_mentioned():
    catalog = Catalog()
    catalog.set_kernel("k", notebook="sales", tools=tools("rain", "snow"))
    assert find_listed_names(catalog) == {}


def test_both_notebooks_that_have_a_tool_of_one_name_are_told_why_and_what_to_do():
    catalog = Catalog()
    catalog.set_kernel("a", notebook="sales", tools=tools("rain", "snow"))
    catalog.set_kernel("b", notebook="stock", tools=tools("rain"))
    names = find_listed_names(catalog)
    ((first,), (second,)) = names["a"], names["b"]
    assert (first.tool, first.name, second.name) == ("rain", "sales_rain", "stock_rain")
    assert first.reason == "Another notebook also has a tool 'rain'."
    assert "Rename one of them" in first.next_step


async def test_a_kernel_is_told_when_the_names_change_and_only_then(home):
    answer = welcome("rain").model_copy(update={"clients": True})
    catalog = Catalog()
    async with (
        peer(home, answer) as sales,
        peer(home, answer, name="stock") as stock,
        Links(catalog, on_change=lambda: None) as links,
    ):
        sales.may_answer.set()
        stock.may_answer.set()
        await links.connect(sales.record)
        await links.connect(stock.record)
        await sales.names_came.wait()
        await stock.names_came.wait()
        for kernel, name in ((sales, "sales_rain"), (stock, "stock_rain")):
            (said,) = [said for said in kernel.heard if said.type == "clients"]
            assert [(listed.tool, listed.name) for listed in said.names] == [("rain", name)]
