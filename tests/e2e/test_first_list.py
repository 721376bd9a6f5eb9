"""The first list of a notebook that has never run is that of its source; its first call waits."""

from contextlib import asynccontextmanager

import anyio
import pytest
from bridges import ask, bridge
from clients import LOAD, ONE_WAY, TOKEN, Changes, connected, over_http, text_of
from listing import list_tools
from live import TIMEOUT, find_free_port
from mcp import MCPError
from notebook_files import write_notebook

pytestmark = pytest.mark.anyio

CELLS = [
    "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)",
    LOAD,
    "def total(region, *, year=2024) -> float:\n    'The sum of all sales.'\n    return 12.5",
    "%mcp_tool total --read-only",
    "%%mcp_tool --name best\ndef top(n: int = 3) -> list[str]:\n    return ['ada', 'bob'][:n]",
    "%%mcp_tool plot(region='EU',\n    year: int = 2024) --title 'A plot'\n# It plots.\nregion",
    "def gone(): ...\nif False:\n    %mcp_tool gone",
    "%%mcp_prompt weekly(week: int)\n# Reads a week\nThe text of {week}.",
]
"""A notebook whose first cell runs until it is let go."""
SOON = 15
"""Seconds, half of what a list waits for cells when nothing is known."""


@asynccontextmanager
async def _connected(home, era, transport, path, **options):
    """Connect a client while the first cell runs."""
    if transport == "stdio":
        async with connected(home, era, transport, str(path), **options) as client:
            yield client
        return
    port, env = str(find_free_port()), {"MCP_NOTEBOOK_TOKEN": TOKEN}
    with bridge(home, "serve", "--port", port, str(path), env=env) as running:
        await anyio.to_thread.run_sync(running.wait_said, "cell 1 of 8")
        url = f"http://127.0.0.1:{port}/mcp"
        assert ask(url, "GET", path="/healthz").status == 503
        async with over_http(url, era, **options) as client:
            yield client
        assert ask(url, "GET", path="/healthz").status == 200
        assert "Tools:     total, best, plot" in running.said
        await anyio.to_thread.run_sync(running.end)


@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_the_first_list_is_that_of_the_source_and_a_call_waits_and_says_for_what(
    home, era, transport
):
    path = write_notebook(home / "sales.ipynb", *CELLS)
    changes, said, runs = Changes(), [], anyio.Event()

    async def note(_done, _total, message):
        said.append(message)
        if "Cell 1 of 8 is running." in message:
            (home / "go").touch()
            runs.set()

    async with _connected(home, era, transport, path, message_handler=changes.handle) as client:
        with anyio.fail_after(SOON):
            tools = {tool.name: tool for tool in await list_tools(client)}
            (prompt,) = (await client.list_prompts()).prompts
            assert (await client.list_resources()).resources == []
            assert (await client.list_resource_templates()).resource_templates == []
        assert [*tools] == ["total", "best", "plot", "gone"]
        assert {name: [*tool.input_schema["properties"]] for name, tool in tools.items()} == {
            "total": ["region", "year"],
            "best": ["n"],
            "plot": ["region", "year"],
            "gone": [],
        }
        assert tools["total"].description == "The sum of all sales."
        assert tools["total"].annotations.read_only_hint
        assert tools["plot"].title == "A plot"
        assert tools["plot"].description == "It plots."
        assert tools["best"].input_schema["additionalProperties"] is True
        assert [argument.name for argument in prompt.arguments] == ["week"]
        async with changes.watch(client, era):
            with anyio.fail_after(TIMEOUT):
                result = await client.call_tool("best", {"n": "two"}, progress_callback=note)
            assert said[0].startswith("The kernel of 'sales' is starting: the call waits until")
            assert runs.is_set()
            assert result.is_error  # by the schema of the function
            assert text_of(result) == "n: got 'two' (string); allowed: integer."
            assert text_of(await client.call_tool("best", {"n": 1})) == '["ada"]'
            await changes.wait()
        tools = {tool.name: tool for tool in await list_tools(client, cache_mode="bypass")}
        assert [*tools] == ["total", "best", "plot"]
        assert tools["best"].input_schema["properties"]["n"]["type"] == "integer"
        missing = await client.call_tool("gone", {})
        assert missing.is_error
        assert "The tool 'gone' of the notebook 'sales' is gone. At " in text_of(missing)
        assert "its cells had run, and none of them declared it." in text_of(missing)


async def test_a_notebook_that_fails_tells_the_call_that_waits(home):
    """The handshake and the list do not wait for a kernel, so a client is there to be told."""
    path = write_notebook(home / "sales.ipynb", *CELLS[:1], "1 / 0", CELLS[4])
    async with connected(home, "auto", "stdio", str(path)) as client:
        with anyio.fail_after(SOON):
            assert [tool.name for tool in await list_tools(client)] == ["best"]

        async def note(_done, _total, _message):
            (home / "go").touch()

        with anyio.fail_after(TIMEOUT):
            result = await client.call_tool("best", {}, progress_callback=note)
        assert text_of(result).startswith(
            "Nothing was called. Code cell 2 of 3 of sales.ipynb fail"
        )


async def test_clients_over_http_are_not_told_the_code_of_a_cell_that_fails(home):
    path = write_notebook(home / "sales.ipynb", CELLS[0], "KEY = 'sk-secret'; 1 / 0")
    port, env = str(find_free_port()), {"MCP_NOTEBOOK_TOKEN": TOKEN}
    with bridge(home, "serve", "--port", port, str(path), env=env) as running:
        await anyio.to_thread.run_sync(running.wait_said, "cell 1 of 2")
        async with over_http(f"http://127.0.0.1:{port}/mcp", "auto") as client:
            (home / "go").touch()
            with anyio.fail_after(TIMEOUT), pytest.raises(MCPError) as told:
                await client.list_tools()
        assert "could not be run" in str(told.value)
        assert "sk-secret" not in str(told.value)
        await anyio.to_thread.run_sync(running.wait_said, "sk-secret")
