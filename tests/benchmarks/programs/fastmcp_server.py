"""FastMCP with the tools: ``python fastmcp_server.py TOOLS PORT`` or ``... TOOLS stdio``."""

import sys

from fastmcp import FastMCP
from fastmcp.utilities.types import Image
from same_tools import SIDE, add, ask, document, fillers, length, png, table

server = FastMCP("comparison")


def picture_500kb():
    """Draw a picture of 500 KB."""
    return Image(data=png(SIDE), format="png")


def table_1mb() -> list[dict]:
    """Return a table of 1 MB."""
    return table().to_dict("records")


named = [add, length, picture_500kb, table_1mb]
for function in [*named, *fillers(int(sys.argv[1]) - len(named))]:
    server.tool(function)
server.prompt(ask)
server.resource("data://document")(document)

if sys.argv[2] == "stdio":
    server.run(transport="stdio", show_banner=False, log_level="ERROR")
else:
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[2]),
        show_banner=False,
        uvicorn_config={"access_log": False, "log_level": "error"},
    )
