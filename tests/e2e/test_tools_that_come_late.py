"""A client that lists tools once and reads no notices, and reaches those that came later."""

import re

import anyio
import pytest
from clients import LOAD, ONE_ERA, connected, pictures_of, text_of
from listing import list_tools
from live import TIMEOUT, live_kernel

pytestmark = pytest.mark.anyio

META = [
    "list_notebook_tools",
    "describe_notebook_tool",
    "call_notebook_tool",
    "notebook_result",
]
LATER = """%%mcp_tool
import io, threading, time
from typing import Annotated
import PIL.Image
from pydantic import Field
stopped = threading.Event()

def nap(seconds: Annotated[float, Field(ge=0, le=60)]) -> str:
    "Sleep for a while."
    stopped.clear()
    try:
        time.sleep(seconds)
    except BaseException:
        stopped.set()
        raise
    return "slept"

def square(side: int):
    "A picture."
    return PIL.Image.new("RGB", (side, side))
"""


@pytest.fixture(scope="module")
def one_kernel(module_home):
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        yield kernel


@pytest.fixture
def kernel(one_kernel):
    """A kernel with the extension, and as yet without tools."""
    one_kernel.ok(LOAD)
    yield one_kernel
    one_kernel.ok("%unload_ext mcp_notebook\n%reset_selective -f .")


async def _define_later(client, kernel):
    """Define tools after the client has listed, and wait until the bridge knows them."""
    assert [tool.name for tool in await list_tools(client)] == META
    await anyio.to_thread.run_sync(kernel.ok, LATER)
    with anyio.fail_after(TIMEOUT):
        while (listed := await _listed(client)) != ["nap", "square"]:
            assert listed == []


async def _listed(client):
    result = await client.call_tool("list_notebook_tools", {})
    return re.findall(r"^- (\w+) ", text_of(result), re.MULTILINE)


async def _call(client, name, arguments, **options):
    return await client.call_tool(
        "call_notebook_tool", {"name": name, "arguments": arguments}, **options
    )


@pytest.mark.smoke
async def test_a_tool_that_came_later_is_described_and_called(kernel, era, transport):
    async with connected(kernel.home, era, transport, "--meta-tools") as client:
        await _define_later(client, kernel)
        described = await client.call_tool("describe_notebook_tool", {"name": "nap"})
        assert text_of(described).startswith("nap (notebook sales)")
        assert '"required": [\n    "seconds"\n  ]' in text_of(described)
        assert "Sleep for a while." in text_of(described)

        (picture,) = pictures_of(await _call(client, "square", {"side": 3}))
        assert picture.mime_type == "image/png"

        for wrong in ({"seconds": 61}, {"second": 1}):
            direct = await client.call_tool("nap", wrong)
            result = await _call(client, "nap", wrong)
            assert result.is_error
            assert text_of(result) == text_of(direct)
            assert "seconds: " in text_of(result)

        unknown = await _call(client, "squares", {})
        assert unknown.is_error
        assert "The tools are: square" in text_of(unknown)


async def test_a_client_may_call_before_it_has_listed_anything(kernel):
    await anyio.to_thread.run_sync(kernel.ok, LATER)
    async with connected(kernel.home, "auto", "stdio", "--meta-tools") as client:
        assert text_of(await _call(client, "nap", {"seconds": 0})) == "slept"


@pytest.mark.parametrize("era", ONE_ERA)
async def test_without_a_kernel_the_three_are_listed_and_say_what_to_do(home, era):
    async with connected(home, era, "stdio", "--meta-tools") as client:
        assert [tool.name for tool in await list_tools(client)] == META
        assert "call_notebook_tool" in client.instructions
        assert "%load_ext mcp_notebook" in text_of(await client.call_tool(META[0], {}))
