"""The SDK's low-level server, tuned: ``python sdk_server.py TOOLS PORT`` or ``... TOOLS stdio``.

Plain JSON, uvloop and httptools, schemas looked up by name, results made by hand: what somebody who
knows the SDK gets without giving any of it up.
"""

import base64
import json
import sys

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from same_tools import SIDE, add, fillers, length, png, table

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
FILLER = {
    "region": TEXT,
    "year": INTEGER,
    "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}]},
}


def text(value: object) -> types.CallToolResult:
    """Return a value as text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(value))])


def picture() -> types.CallToolResult:
    """Return a picture."""
    encoded = base64.b64encode(png(SIDE)).decode()
    return types.CallToolResult(
        content=[types.ImageContent(type="image", data=encoded, mime_type="image/png")]
    )


def table_1mb() -> types.CallToolResult:
    """Return the table as text and as data, as FastMCP does."""
    records = table().to_dict("records")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(records))],
        structured_content={"result": records},
    )


CALLS = {
    "add": ({"a": INTEGER, "b": INTEGER}, lambda a, b: text(add(a, b))),
    "length": ({"text": TEXT}, lambda **given: text(length(**given))),
    "picture_500kb": ({}, picture),
    "table_1mb": ({}, table_1mb),
}
more = fillers(int(sys.argv[1]) - len(CALLS))
CALLS |= {f.__name__: (FILLER, lambda f=f, **given: text(f(**given))) for f in more}
DESCRIPTIONS = {f.__name__: f.__doc__ for f in more}
SCHEMAS = {
    name: {"type": "object", "properties": properties, "required": sorted(properties)}
    for name, (properties, _) in CALLS.items()
}
TOOLS = [
    types.Tool(name=name, description=DESCRIPTIONS.get(name, name), input_schema=schema)
    for name, schema in SCHEMAS.items()
]


async def list_tools(_context, _params) -> types.ListToolsResult:
    """Answer tools/list."""
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(_context, params) -> types.CallToolResult:
    """Answer tools/call."""
    return CALLS[params.name][1](**params.arguments or {})


server = Server(
    "comparison",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    get_tool_input_schema=SCHEMAS.get,
)


async def over_stdio() -> None:
    """Serve one client."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if sys.argv[2] == "stdio":
    anyio.run(over_stdio)
else:
    uvicorn.run(
        server.streamable_http_app(json_response=True),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        access_log=False,
        log_level="error",
    )
