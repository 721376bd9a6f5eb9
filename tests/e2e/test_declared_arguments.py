"""Arguments that need care on their way: as a real client sends them to functions of all kinds."""

import anyio
import pytest
from clients import connected, text_of, tool_kernel
from listing import list_tools

from mcp_notebook import meta_keys

CELLS = (
    """
import enum, functools, math
from typing import Annotated
import pandas as pd
from mcp_notebook import Columns
frame = pd.DataFrame({"city": ["Oslo", "Rome"], "mm": [1.5, 2.0]})

class Access(enum.IntFlag):
    READ = 1
    WRITE = 2

@functools.singledispatch
def area(shape: int | str) -> str:
    "Area."
    return f"text {shape}"

@area.register
def _(shape: int) -> str:
    return f"number {shape}"
""",
    "%mcp_tool frame.query frame.groupby pd.read_csv math.sqrt area",
    """
%%mcp_tool --tag a,b --related sqrt,nothing
def total(scale: float, /, *values: float, access: Access = Access.READ) -> str:
    "Total."
    return f"{scale * sum(values)} {access!r}"

def first_rows(rows: list[dict[str, int]], data: bytes = b"") -> str:
    "Rows."
    return f"{rows} {data}"

def rain(days: Annotated[pd.DataFrame, Columns(city=str, mm=float)]) -> float:
    "Rain."
    return days.mm.sum()
""".lstrip(),
)


@pytest.fixture(scope="module")
def notebook(module_home):
    with tool_kernel(module_home, *CELLS) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def answers(notebook):
    """The texts that a client is answered with, and what it sees of the tools."""

    async def ask():
        async with connected(notebook.home, "auto", "stdio") as client:
            tools = {tool.name: tool for tool in await list_tools(client)}
            return tools, [
                text_of(await client.call_tool(name, arguments)) for name, arguments, _ in CALLS
            ]

    return anyio.run(ask)


CALLS = (
    ("query", {"expr": "mm > 1.6"}, "Rome"),
    ("sqrt", {"x": 9}, "3.0"),
    ("area", {"shape": 2}, "number 2"),
    ("area", {"shape": "round"}, "text round"),
    ("total", {"scale": 2, "values": [1, 2.5], "access": 3}, "7.0 <Access.READ|WRITE: 3>"),
    ("total", {"scale": 2, "values": "[1]"}, "2.0 <Access.READ: 1>"),
    ("first_rows", {"rows": '[{"a": 1}]', "data": "YWJj"}, "[{'a': 1}] b'abc'"),
    ("first_rows", {"rows": [{"a": 1}], "data": "?"}, "bytes are sent as base64"),
    ("rain", {"days": [{"city": "Oslo", "mm": 1.5}, {"city": "Rome", "mm": 2}]}, "3.5"),
    ("rain", {"days": {"city": ["Oslo"], "mm": [2.5]}}, "2.5"),
    ("rain", {"days": [{"city": "Oslo", "mm": "abc"}]}, "days[0].mm: got 'abc' (string); allowed"),
    ("total", {"scale": 2, "access": 4}, "allowed: integer from 0 to 3"),
)


def test_each_call_reaches_its_function(answers):
    _, texts = answers
    for (name, arguments, said), text in zip(CALLS, texts, strict=True):
        assert said in text, (name, arguments)


def test_a_client_is_told_what_there_is(answers):
    tools, _ = answers
    assert {"query", "groupby", "read_csv"} <= tools.keys()
    assert tools["total"].description == "Total.\n\nSee also: sqrt."
    assert tools["total"].meta[meta_keys.TAGS] == ["a", "b"]
