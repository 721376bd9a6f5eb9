"""A live notebook in the hands of the official MCP client: every era, every transport."""

import json

import anyio
import pytest
from clients import Changes, connected, pictures_of, text_of
from listing import is_unknown, list_tools
from live import record_of

pytestmark = pytest.mark.anyio

CALLS = {
    "monthly_rain": {"year": 2015},
    "plot_temperature": {"city": "Seattle", "month": 7},
    "rainy_days": {"kind": "snow", "count": 2},
    "chance_of_dry_spell": {"days": 5, "month": 8, "rounds": 200},
}


@pytest.mark.smoke
async def test_every_tool_of_the_weather_notebook_is_listed_and_called(
    weather, connect, era, transport
):
    async with connect(era, transport) as client:
        tools = {tool.name: tool for tool in await list_tools(client)}
        assert list(tools) == list(CALLS)
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["additionalProperties"] is False
        results = {name: await client.call_tool(name, given) for name, given in CALLS.items()}
        assert not [name for name, result in results.items() if result.is_error]
        assert "December," in text_of(results["monthly_rain"])
        (picture,) = pictures_of(results["plot_temperature"])
        assert picture.mime_type == "image/png"
        assert len(picture.data) > 10_000
        assert json.loads(text_of(results["rainy_days"]))["threshold_mm"] == 1.0
        assert "dry days in a row" in text_of(results["chance_of_dry_spell"])


async def test_a_rebound_variable_is_seen_by_the_next_call(weather, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        for threshold in (5.0, 1.0):
            await anyio.to_thread.run_sync(weather.ok, f"threshold_mm = {threshold}")
            result = await client.call_tool("rainy_days", {})
            assert json.loads(text_of(result))["threshold_mm"] == threshold


@pytest.mark.smoke
async def test_clients_are_told_of_changed_new_and_removed_tools(weather, connect, era, transport):
    changes = Changes()
    async with (
        connect(era, transport, message_handler=changes.handle) as client,
        changes.watch(client, era),
    ):
        for cell, expected in (
            ("%%mcp_tool\ndef extra(x: int) -> int:\n    'First.'\n    return x", "First."),
            ("def extra(x: int) -> int:\n    'Second.'\n    return x", "Second."),
            ("del extra", None),
        ):
            await anyio.to_thread.run_sync(weather.ok, cell)
            found = "not listed yet"
            while found != expected:  # a notice from the bridge's own start may come first
                await changes.wait()
                listed = await client.list_tools(cache_mode="bypass")
                found = next(
                    (tool.description for tool in listed.tools if tool.name == "extra"), None
                )


@pytest.mark.smoke
async def test_wrong_arguments_are_a_result_that_says_what_is_allowed(weather, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        result = await client.call_tool("monthly_rain", {"year": 1815})
        assert result.is_error
        assert "1815" in text_of(result)
        assert "2012" in text_of(result)


@pytest.mark.smoke
async def test_an_unknown_tool_is_a_result_that_a_model_reads(weather, connect):
    async with connect("auto", "http") as client:
        result = await client.call_tool("no_such_tool", {})
        assert is_unknown(result)
        assert "no_such_tool" in text_of(result)
        assert (await client.list_tools()).tools  # the bridge lives on


async def test_the_instructions_know_of_an_open_notebook(weather, connect):
    async with connect("auto", "http") as client:
        assert "No notebook offers" not in client.instructions


async def test_no_kernel_alive_gives_an_empty_list_and_instructions(home, era, transport):
    async with connected(home, era, transport) as client:
        assert (await client.list_tools()).tools == []
        assert "%load_ext mcp_notebook" in client.instructions


def test_the_record_tells_the_notebooks_name(weather):
    assert record_of(weather).name == "weather"
