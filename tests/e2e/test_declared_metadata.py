"""What a tool says about itself besides its schemas, read off the wire in both eras."""

from contextlib import asynccontextmanager

import anyio
import pytest
from clients import (
    HEADERS,
    answer_of,
    http_bridge,
    http_client,
    raw_session,
    text_of,
    tool_kernel,
)
from listing import list_tools
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_notebook import meta_keys

pytestmark = pytest.mark.anyio

CELLS = [
    """
%%mcp_tool --name rain-fall --title "Rain fall" --description "How wet." --icon drop.svg \
--icon https://example.com/rain.png --read-only --idempotent --closed-world --priority 5 \
--related everything,nothing --tag weather --tag demo
def rain(): ...
""",
    """
from datetime import date
from typing import Annotated, Literal
from dataclasses import dataclass
from pydantic import BaseModel, Field
from mcp_notebook import Header, Hidden, Icon, mcp_tool

@dataclass
class Place:
    latitude: Annotated[float, Field(ge=-90, le=90)]
    name: str = "here"

class Order(BaseModel):
    item: str
    count: int = 1

@mcp_tool(
    title="Everything",
    icons=[Icon("https://example.com/all.png", "image/png", "128x64", "dark")],
    destructive=False,
    open_world=True,
    examples=[{"text": "abcd", "order": {"item": "tea"}}],
    priority=9.5,
    related={"rain-fall"},
    tags=["all"],
    meta={
        "com.example/team": {"name": "sales"},
        "openai/outputTemplate": "ui://sales/chart",
    },
)
def everything(
    text: Annotated[str, Field(min_length=2, max_length=9, pattern="^[a-z]+$", description="A.")],
    order: Order,
    mail: Annotated[str, Field(json_schema_extra={"format": "email"})] = "a@example.com",
    day: date = date(2012, 1, 1),
    number: Annotated[float, Field(gt=0, lt=9, multiple_of=0.5, examples=[1.5])] = 1.0,
    integer: Annotated[int, Field(ge=1, le=8), "Of text."] = 2,
    flag: bool = False,
    kind: Literal["a", "b"] = "a",
    items: Annotated[list[int], Field(min_length=1, max_length=3)] = [1],
    unique: set[str] = {"x"},
    place: Place | None = None,
    secret: Annotated[object, Hidden] = date,
) -> str:
    \"\"\"Takes everything.

    Args:
        flag: From the docstring.
    \"\"\"
    return f"{order.item} {place}"
""",
    """
%%mcp_tool
def numpy_style(a: int):
    \"\"\"NumPy.

    Parameters
    ----------
    a : int
        From NumPy.
    \"\"\"

def rest_style(a: int):
    \"\"\"reST.

    :param a: From reST.
    \"\"\"

def by_region(
    region: Annotated[str, Header("Region")],
    year: Annotated[int, Header("Year")] = 2012,
    limit: Annotated[int, Hidden] = 10,
) -> str:
    "By region."
    return f"{region} {year} {limit}"
""",
]


@pytest.fixture(scope="module")
def url(module_home):
    """A bridge, and a kernel in which all cells were run."""
    (module_home / "drop.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    with (
        tool_kernel(module_home, *(cell.strip() for cell in CELLS)),
        http_bridge(module_home) as served,
    ):
        yield served.url


@asynccontextmanager
async def asked(url, era):
    """Yield a client, and the headers of each request that it sends."""
    sent = []

    async def note(request):
        sent.append(request.headers)

    async with (
        http_client(headers=HEADERS, event_hooks={"request": [note]}) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        with anyio.fail_after(60):
            yield client, sent


async def tools(url, era):
    async with asked(url, era) as (client, _):
        return {tool.name: tool for tool in await list_tools(client)}


async def test_the_words_of_the_magics_line_arrive(url, era):
    tool = (await tools(url, era))["rain-fall"]
    assert tool.title == "Rain fall"
    assert tool.description == "How wet.\n\nSee also: everything."
    assert tool.annotations.model_dump(by_alias=True, exclude_none=True) == {
        "readOnlyHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    drop, address = [icon.model_dump(by_alias=True, exclude_none=True) for icon in tool.icons]
    assert drop["src"].startswith("data:image/svg+xml;base64,")
    assert drop["mimeType"] == "image/svg+xml"
    assert address == {"src": "https://example.com/rain.png"}
    assert tool.meta == {
        meta_keys.TAGS: ["weather", "demo"],
        meta_keys.PRIORITY: 5,
        meta_keys.RELATED: ["everything"],
    }


async def test_a_parameter_with_a_header_is_marked_and_modern_clients_send_it(url, era):
    async with asked(url, era) as (client, sent):
        tool = {tool.name: tool for tool in await list_tools(client)}["by_region"]
        marks = {
            name: item["x-mcp-header"] for name, item in tool.input_schema["properties"].items()
        }
        assert marks == {"region": "Region", "year": "Year"}
        result = await client.call_tool("by_region", {"region": "Üb er", "year": 7})
        assert text_of(result) == "Üb er 7 10"
        (headers,) = [item for item in sent if "mcp-param-region" in item] or [None]
        if era == "legacy":
            assert headers is None
        else:
            assert headers["mcp-param-year"] == "7"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_clients_of_older_versions_get_what_they_know_where_they_look(url, version):
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with raw_session(url, version) as (http, hello):
        assert hello["protocolVersion"] == version
        result = answer_of(await http.post(url, json=request))["result"]
    tool = {tool["name"]: tool for tool in result["tools"]}["rain-fall"]
    hints = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    expected = {
        "2024-11-05": {},
        "2025-03-26": {"annotations": {**hints, "title": "Rain fall"}},
        "2025-06-18": {"annotations": hints, "title": "Rain fall", "_meta": tool.get("_meta")},
    }[version]
    assert tool == {
        "name": "rain-fall",
        "description": "How wet.\n\nSee also: everything.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        **expected,
    }
