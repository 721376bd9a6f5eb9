"""Structured content other than objects: as it is at 2026-07-28, and in an object before."""

import pytest
from clients import answer_of, connected, structured, text_of
from listing import list_tools
from live import kernel_with
from raw_calls import WAYS, post_call, post_older_call
from task_client import TasksExtension

from mcp_notebook.text.missing_tools import META_TOOLS

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import math

def zero() -> int:
    "A number that is false."
    return 0

def many(count: int) -> list[int]:
    "A list."
    return list(range(count))

def unknown() -> float:
    "Not a number."
    return math.nan

def nothing() -> list[int] | None:
    "No list."

def either(empty: bool) -> dict[str, int] | list[int]:
    "An object whose schema allows a list as well."
    return [] if empty else {"a": 1}

def named() -> dict[str, int]:
    "An object."
    return {"result": 1}
"""
LATER = """%%mcp_tool --task
def later() -> list[str]:
    "A task."
    return ["done"]
"""
VALUES = {
    "zero": 0,
    "unknown": None,
    "nothing": None,
}
TYPES = {"zero": "integer", "many": "array", "unknown": ["number", "null"], "named": "object"}
kernel = kernel_with(TOOLS, LATER)


@pytest.mark.smoke
@pytest.mark.usefixtures("kernel")
async def test_the_schema_and_the_data_are_the_values_own_where_the_era_allows_it(
    connect, era, transport
):
    # The official client compares each result with the listed schema.
    async with connect(era, transport) as client:
        schemas = {tool.name: tool.output_schema for tool in await list_tools(client)}
        for name, kind in TYPES.items():
            assert schemas[name]["type"] == ("object" if era == "legacy" else kind)
        for name, value in VALUES.items():
            result = await client.call_tool(name, {})
            assert result.structured_content == structured(value, era)
        result = await client.call_tool("many", {"count": 3})
        assert result.structured_content == structured([0, 1, 2], era)
        for empty, value in ((True, []), (False, {"a": 1})):
            result = await client.call_tool("either", {"empty": empty})
            assert result.structured_content == structured(value, era)
        assert (await client.call_tool("named", {})).structured_content == {"result": 1}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("kernel")
async def test_both_ways_to_an_answer_send_the_same_data_null_among_it(served, way):
    for name, value in VALUES.items():
        result = answer_of(await post_call(served.url, name, way=way))["result"]
        assert "structuredContent" in result
        assert result["structuredContent"] == value
        older = await post_older_call(served.url, name, way=way)
        assert older["structuredContent"] == {"result": value}


@pytest.mark.usefixtures("kernel")
async def test_a_tasks_result_and_that_of_a_meta_tool_are_the_same(module_home, connect):
    async with connect("auto", "http", extensions=[TasksExtension()]) as client:
        assert (await client.call_tool("later", {})).structured_content == ["done"]
    for era in ("auto", "legacy"):
        async with connected(module_home, era, "stdio", "--meta-tools") as client:
            asked = {"name": "many", "arguments": {"count": 2}}
            result = await client.call_tool(META_TOOLS[2], asked)
            assert text_of(result) == "[0,1]"
            assert result.structured_content == structured([0, 1], era)
