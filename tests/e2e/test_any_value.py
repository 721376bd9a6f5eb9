"""Whatever a tool returns or shows, its client gets a valid result, and the next call works.

The values of `odd_values` go through the whole way: a real kernel, a real bridge, the official
client in every era.
"""

import json
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from clients import ERAS, connected, text_of
from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from odd_values import ODD

TESTS = Path(__file__).parents[1]
BLOCKS = (TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink)
MOST_CHARS = 30_000
"""What a result's texts may be, with the notes about what was left out."""
SETUP = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
import asyncio, time, warnings
from typing import Any
from IPython.display import display
from mcp_notebook import mcp_tool
from odd_values import ODD
warnings.simplefilter("ignore")
closed = []

def made(value):
    return ODD[value]()

@mcp_tool
def give(value: str):
    return made(value)

@mcp_tool
async def give_later(value: str):
    return made(value)

@mcp_tool(output_schema=True)
def give_object(value: str) -> dict[str, Any]:
    return made(value)

@mcp_tool
def show(value: str):
    display(made(value))
    print(made(value))

@mcp_tool
def fail(value: str):
    raise RuntimeError(made(value))

@mcp_tool
async def count(most: int):
    try:
        for number in range(most):
            yield number
    finally:
        await asyncio.sleep(0)
        closed.append(most)

@mcp_tool
def were_closed() -> list[int]:
    return closed

class Endless:
    def __repr__(self):
        while True:
            time.sleep(0.001)

@mcp_tool
def endless():
    return Endless()

@mcp_tool(run="thread")
def endless_beside():
    return Endless()

@mcp_tool
async def endless_later():
    return Endless()

@mcp_tool
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.fixture(scope="module")
def clients(shared_kernel):
    """Clients of every era, and the portal to the loop that they run on."""
    pytest.importorskip("pandas")
    shared_kernel.ok(SETUP)
    with start_blocking_portal() as portal:
        waits = [
            portal.wrap_async_context_manager(connected(shared_kernel.home, era, "stdio"))
            for era in ERAS
        ]
        with waits[0] as legacy, waits[1] as auto:
            made = dict(zip(ERAS, (legacy, auto), strict=True))
            for client in made.values():
                # The client compares results with the schemas that it has listed.
                portal.call(client.list_tools)

            def call(era, tool, **arguments):
                return portal.call(made[era].call_tool, tool, arguments)

            yield call


def check(call, era, tool, value):
    """Send a value, and see that what comes is a result."""
    result = call(era, tool, value=value)
    assert result.content
    assert all(isinstance(block, BLOCKS) for block in result.content)
    assert len(text_of(result)) <= MOST_CHARS
    assert all(block.text.strip() for block in result.content if isinstance(block, TextContent))
    json.dumps(result.model_dump(mode="json", by_alias=True), allow_nan=False).encode()
    if tool == "give_object" and not result.is_error:
        assert result.structured_content is not None
    if tool == "fail":
        assert result.is_error


def check_kernel(call, era):
    """See that the kernel goes on."""
    assert text_of(call(era, "add", a=1, b=2)) == "3"


LARGE = {"a million keys"}
"""Odd values that a client reads for half a minute."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in LARGE)) for name in ODD]
)
def test_an_odd_value_becomes_a_valid_result(clients, name):
    era = ERAS[len(name) % len(ERAS)]
    for tool in ("give", "give_object", "give_later", "show", "fail"):
        check(clients, era, tool, name)
    check_kernel(clients, era)


def test_an_async_generator_is_collected_and_closed(clients):
    assert json.loads(text_of(clients("auto", "count", most=3))) == [0, 1, 2]
    text = text_of(clients("auto", "count", most=2_000))
    assert "999" in text
    assert "only the first 1,000 items were taken" in text
    assert json.loads(text_of(clients("auto", "were_closed")))[-2:] == [3, 2_000]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["endless", "endless_beside", "endless_later"])
def test_a_repr_that_never_ends_holds_the_kernel_for_five_seconds(clients, shared_kernel, tool):
    result = clients("auto", tool)
    assert not result.is_error
    assert text_of(result) == "[an object of type Endless whose repr took longer than 5 s]"
    assert text_of(clients("auto", "add", a=1, b=2)) == "3"
    assert shared_kernel.ok("time.sleep(0.01); 6 * 7").displays == [{"text/plain": "42"}]
