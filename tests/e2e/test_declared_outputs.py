"""Output schemas, structured results, results by hand, flattened models: as a client reads them."""

import json
import re

import pytest
from clients import ONE_WAY, text_of
from listing import list_tools
from live import kernel_with
from schemas import check_schema

pytestmark = pytest.mark.anyio

MODELS = """
import datetime as dt
import math
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Literal
from uuid import UUID
import numpy as np
import pandas as pd
from pydantic import BaseModel, Field
from mcp_notebook import Context, Result, ToolError, mcp_tool

class Colour(Enum):
    RED = "red"

class Item(BaseModel):
    name: str
    price: float = Field(serialization_alias="unitPrice")

class Tree(BaseModel):
    value: int
    kids: list["Tree"] = []

class Query(BaseModel):
    "Find items."
    region: Literal["EU", "US"]
    limit: int = Field(10, ge=1, description="How many")
"""
TOOLS = """%%mcp_tool --output-schema
def item(price: float = 1.5) -> Item:
    print("looked up")
    return Item(name="a", price=price)

def items() -> list[Item]:
    return [Item(name="a", price=math.nan)]

def tree() -> Tree:
    return Tree(value=1, kids=[Tree(value=2)])

def number() -> int:
    return 42

def large() -> list[int]:
    return list(range(100_000))

async def wrong() -> dict[str, float]:
    return {"a": 1, "b": "x"}

def refused() -> int:
    raise ToolError("Ask for less.")

def nothing() -> list[int] | None:
    "No list."
"""
PLAIN = """%%mcp_tool
def words() -> str:
    return "text"

def annotated() -> Item:
    print("looked up")
    return Item(name="a", price=1)

def by_hand() -> Result:
    return Result("said", structured=[1, 2], meta={"com.example/source": "sales"})

def bad_meta() -> Result:
    return Result("said", meta={"io.modelcontextprotocol/source": "sales"})
"""
OPTIONS = """
NUMBERS = {"type": "array", "items": {"$ref": "#/$defs/N"}, "$defs": {"N": {"type": "integer"}}}

@mcp_tool(output_schema=NUMBERS)
def listed(last: int = 2) -> list:
    return [1, last]

@mcp_tool(output_schema=True)
def spoken() -> str:
    return "said"

@mcp_tool(output_schema=True)
def converted() -> dict:
    when = dt.datetime(2026, 11, 21, 12, 30, tzinfo=dt.timezone.utc)
    return {
        "nan": [math.nan, math.inf], "missing": [None, pd.NA, pd.NaT],
        "numpy": [np.int64(3), np.float32(0.5), np.bool_(True)], "array": np.eye(2),
        "moments": [when, when.date(), pd.Timestamp(when), dt.timedelta(hours=26)],
        "exact": Decimal("1.10"), "id": UUID(int=1), "path": Path("a/b"),
        "bytes": [b"text", b"\\xff\\xfe"], "set": {1}, 5: Colour.RED,
        "frame": pd.DataFrame({"a": [1, 2]}),
    }

"""
FLAT = """%%mcp_tool --flatten
def search(query: Query, ctx: Context) -> dict:
    return {"got": type(query).__name__, "region": query.region, "limit": query.limit}
"""

CONVERTED = {
    "nan": [None, None],
    "missing": [None, None, None],
    "numpy": [3, 0.5, True],
    "array": [[1.0, 0.0], [0.0, 1.0]],
    "moments": ["2026-11-21T12:30:00Z", "2026-11-21", "2026-11-21T12:30:00Z", "P1DT2H"],
    "exact": "1.10",
    "id": "00000000-0000-0000-0000-000000000001",
    "path": "a/b",
    "bytes": ["text", "//4="],
    "set": [1],
    "5": "red",
    "frame": [{"a": 1}, {"a": 2}],
}


kernel = kernel_with(MODELS, TOOLS, PLAIN, OPTIONS, FLAT)


@pytest.mark.smoke
@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
@pytest.mark.usefixtures("kernel")
async def test_a_client_of_either_era_reads_every_row(connect, era, transport):
    # The official client compares each result with its schema, and raises where they differ.
    async with connect(era, transport) as client:
        listed = {tool.name: tool for tool in await list_tools(client)}
        schemas = {name: tool.output_schema for name, tool in listed.items()}
        for schema in filter(None, schemas.values()):
            check_schema(schema)
            assert schema["type"] == "object"
            assert schema["properties"]["about_this_result"]["type"] == "string"
        assert {name for name, schema in schemas.items() if schema is None} == {
            *("words", "annotated", "by_hand", "bad_meta", "search")
        }
        keys = schemas["item"]["properties"].keys()
        assert keys == {"name", "unitPrice", "about_this_result"}
        lists = schemas["listed"]["properties"]["result"]
        assert lists["items"] == {"$ref": "#/$defs/N"}

        found = await client.call_tool("item", {"price": 2})
        data = {"name": "a", "unitPrice": 2.0, "about_this_result": "looked up"}
        assert found.structured_content == data
        assert text_of(found) == 'looked up\n{"name":"a","price":2.0}'
        annotated = await client.call_tool("annotated", {})
        assert annotated.structured_content is None
        assert text_of(annotated) == 'looked up\n{"name":"a","price":1.0}'
        for name, expected in {
            "converted": CONVERTED,
            "items": {"result": [{"name": "a", "unitPrice": None}]},
            "tree": {"value": 1, "kids": [{"value": 2, "kids": []}]},
            "number": {"result": 42},
            "spoken": {"result": "said"},
            "listed": {"result": [1, 2]},
            "nothing": {"result": None},
            "words": None,
        }.items():
            result = await client.call_tool(name, {})
            assert not result.is_error, text_of(result)
            assert result.structured_content == expected

        for name, said in {
            "wrong": "result.b: got 'x' (string); allowed: number",
            "bad_meta": "MCP reserves",
            "refused": "Ask for less.",
        }.items():
            result = await client.call_tool(name, {})
            assert result.is_error
            assert result.structured_content is None
            assert said in text_of(result)

        large = await client.call_tool("large", {})
        kept = large.structured_content["result"]
        assert kept == list(range(len(kept)))
        assert 4_000 < len(kept) < 6_000
        about = large.structured_content["about_this_result"]
        for text in (about, text_of(large)):
            assert f"the first {len(kept):,} of 100,000 items" in text
        address = re.search(r'read_notebook_resource\(uri="(notebook://\S+value\.json)"', about)[1]
        (whole,) = (await client.read_resource(address)).contents
        assert json.loads(whole.text) == list(range(100_000))

        by_hand = await client.call_tool("by_hand", {})
        assert text_of(by_hand) == "said"
        assert by_hand.meta["com.example/source"] == "sales"
        assert by_hand.structured_content == {"result": [1, 2], "about_this_result": "said"}

        search = listed["search"]
        assert search.description == "Find items."
        assert list(search.input_schema["properties"]) == ["region", "limit"]
        assert search.input_schema["properties"]["limit"]["description"] == "How many"
        got = await client.call_tool("search", {"region": "EU"})
        assert json.loads(text_of(got)) == {"got": "Query", "region": "EU", "limit": 10}
        refused = await client.call_tool("search", {"region": "Asia"})
        assert text_of(refused) == "region: got 'Asia' (string); allowed: 'EU' | 'US'."
