"""What a tool says about itself besides its schemas, read off the wire in both eras."""

import base64
import io
from contextlib import asynccontextmanager

import anyio
import PIL.Image
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
import PIL.Image
from datetime import date
from typing import Annotated, Literal
import attrs
from pydantic import BaseModel, Field
from mcp_notebook import Header, Hidden, Icon, mcp_tool

@attrs.define
class Place:
    latitude: Annotated[float, Field(ge=-90, le=90)]
    name: str = "here"

class Order(BaseModel):
    item: str
    count: int = 1

@mcp_tool(
    title="Everything",
    icons=[Icon(PIL.Image.new("RGB", (512, 256), "red"), theme="dark")],
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


async def test_tools_come_by_priority_then_in_order(url, era):
    assert list(await tools(url, era)) == [
        "everything",
        "rain-fall",
        "numpy_style",
        "rest_style",
        "by_region",
    ]


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
    assert (drop["mimeType"], drop["sizes"]) == ("image/svg+xml", ["any"])
    assert address == {"src": "https://example.com/rain.png"}
    assert tool.meta == {
        meta_keys.TAGS: ["weather", "demo"],
        meta_keys.PRIORITY: 5,
        meta_keys.RELATED: ["everything"],
    }


async def test_the_keywords_of_the_decorator_arrive(url, era):
    tool = (await tools(url, era))["everything"]
    assert tool.title == "Everything"
    assert tool.description == (
        'Takes everything.\n\nExamples of arguments:\n- {"text": "abcd", "order": {"item": "tea"}}'
        "\n\nSee also: rain-fall."
    )
    assert tool.annotations.model_dump(by_alias=True, exclude_none=True) == {
        "destructiveHint": False,
        "openWorldHint": True,
    }
    (icon,) = tool.icons
    assert (icon.mime_type, icon.sizes, icon.theme) == ("image/png", ["128x64"], "dark")
    data = base64.b64decode(icon.src.removeprefix("data:image/png;base64,"))
    with PIL.Image.open(io.BytesIO(data)) as image:
        assert image.size == (128, 64)
    assert tool.meta == {
        "com.example/team": {"name": "sales"},
        "openai/outputTemplate": "ui://sales/chart",
        meta_keys.TAGS: ["all"],
        meta_keys.PRIORITY: 9.5,
        meta_keys.RELATED: ["rain-fall"],
    }


async def test_a_tool_without_metadata_has_none_in_the_list(url, era):
    tool = (await tools(url, era))["numpy_style"]
    assert (tool.title, tool.icons, tool.annotations, tool.meta) == (None, None, None, None)


async def test_what_parameters_take_arrives(url, era):
    schema = (await tools(url, era))["everything"].input_schema
    assert schema["required"] == ["text", "order"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert "secret" not in properties
    order = properties.pop("order")
    if "$ref" in order:
        order = schema["$defs"][order["$ref"].rpartition("/")[2]]
    assert order["required"] == ["item"]
    assert order["properties"]["count"]["default"] == 1
    place = properties["place"]["anyOf"][0]
    assert place["required"] == ["latitude"]
    assert place["properties"]["latitude"] == {"type": "number", "minimum": -90, "maximum": 90}
    assert place["properties"]["name"] == {"type": "string", "default": "here"}
    for name, said in {
        "text": {"minLength": 2, "maxLength": 9, "pattern": "^[a-z]+$", "description": "A."},
        "mail": {"format": "email", "default": "a@example.com"},
        "day": {"format": "date", "default": "2012-01-01"},
        "number": {
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 9,
            "multipleOf": 0.5,
            "examples": [1.5],
        },
        "integer": {"type": "integer", "minimum": 1, "maximum": 8, "description": "Of text."},
        "flag": {"type": "boolean", "default": False, "description": "From the docstring."},
        "kind": {"enum": ["a", "b"]},
        "items": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        "unique": {"type": "array", "uniqueItems": True},
    }.items():
        assert properties[name].items() >= said.items(), name


async def test_descriptions_of_parameters_come_from_every_style_of_docstring(url, era):
    listed = await tools(url, era)
    for name, said in {"numpy_style": "From NumPy.", "rest_style": "From reST."}.items():
        assert listed[name].input_schema["properties"]["a"]["description"] == said


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


async def test_what_is_hidden_cannot_be_set(url, era):
    async with asked(url, era) as (client, _):
        await client.list_tools()
        result = await client.call_tool("by_region", {"region": "EU", "limit": 99})
        assert result.is_error
        assert "limit: no such parameter" in text_of(result)


async def test_an_attrs_argument_arrives_as_an_instance(url, era):
    async with asked(url, era) as (client, _):
        await client.list_tools()
        given = {"text": "abc", "order": {"item": "tea"}, "place": {"latitude": 47.6}}
        result = await client.call_tool("everything", given)
        assert text_of(result) == "tea Place(latitude=47.6, name='here')"


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
