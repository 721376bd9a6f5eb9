"""What a list of 1,000 tools takes in the bridge. No test: run it by hand.

    python tests/benchmarks/bench_list.py

The first list makes all tools, later ones none; after a change of one tool, one. In the bridge:
from the request to the result's JSON, as the SDK writes it over HTTP (modern) and stdio (legacy).
On the link: the whole list, from the kernel's objects to the bridge's catalogue.
"""

import json
import statistics
import time
from collections.abc import Callable

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp_types.jsonrpc import JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.wire import frames, messages

TOOLS, ROUNDS = 1_000, 15
MODERN, LEGACY = "2026-07-28", HANDSHAKE_PROTOCOL_VERSIONS[-1]
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "enum": ["EU", "US"], "description": "Sales region."},
        "year": {"type": "integer", "minimum": 2010, "maximum": 2030, "default": 2012},
        "cities": {"type": "array", "items": {"type": "string"}, "description": "Which."},
        "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    },
    "required": ["region", "cities"],
    "additionalProperties": False,
}


class Request:
    """What the SDK knows of a request besides method and parameters."""

    request_id, message_metadata, can_send_request, transport = 1, None, False, None


def tools(changed: str = "") -> list[messages.ToolInfo]:
    """Return the tools, one of them with this text."""
    text = "Customers with the highest revenue, with all that a model should know. " * 3
    return [
        messages.ToolInfo(
            name=f"tool_{i}", description=text + changed * (i == 7), input_schema=SCHEMA
        )
        for i in range(TOOLS)
    ]


def timed(act: Callable[[], object]) -> float:
    """Return the milliseconds that this takes."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1e3


def show(name: str, times: list[float]) -> None:
    """Print the median and the range."""
    print(f"{name:34} {statistics.median(times):6.1f} ms   {min(times):.1f} to {max(times):.1f}")


async def listed(server: NotebookServer, version: str) -> str:
    """Return the answer to a request for the list."""
    connection = Connection.from_envelope(version, None, None)
    runner = ServerRunner(server.mcp, connection, {})
    params = None if version == LEGACY else {"_meta": META}
    answer = await runner.on_request(Request(), "tools/list", params)
    if version == LEGACY:
        response = JSONRPCResponse(jsonrpc="2.0", id=1, result=answer)
        return response.model_dump_json(by_alias=True, exclude_unset=True)
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": answer}, separators=(",", ":"))


async def in_the_bridge(version: str) -> None:
    """Measure lists in this version of the protocol."""
    times: dict[str, list[float]] = {"first": [], "again": [], "one tool changed": []}
    for number in range(ROUNDS):
        catalog = Catalog()
        server = NotebookServer(catalog, Links(catalog, on_change=lambda: None))
        catalog.set_kernel("1", notebook="sales", tools=tools())
        for name, of in times.items():
            if name == "one tool changed":
                catalog.set_kernel("1", notebook="sales", tools=tools(str(number)))
            began = time.perf_counter()
            answer = await listed(server, version)
            of.append((time.perf_counter() - began) * 1e3)
            assert answer.count('"tool_') == TOOLS
    for name, of in times.items():
        show(f"list, {version}, {name}", of)


def on_the_link() -> None:
    """Measure what a change of one tool of many costs before clients hear of it."""
    message = messages.Tools(tools=tools())
    encoded = [frames.encode(messages.Tools(tools=tools(text)))[0] for text in "ab"]
    show("link: kernel writes", [timed(lambda: frames.encode(message)) for _ in range(ROUNDS)])
    catalog = Catalog()
    reads, joins = [], []
    for number in range(ROUNDS):
        body = encoded[number % 2][4:]
        reads.append(timed(lambda: frames._parse(body)))  # noqa: B023 - run at once
        parsed = frames._parse(body)[0].tools
        joins.append(timed(lambda: catalog.set_kernel("1", notebook="a", tools=parsed)))  # noqa: B023
    show("link: bridge reads", reads)
    show("catalogue takes them", joins)


def main() -> None:
    """Measure and print."""
    for version in (LEGACY, MODERN):
        anyio.run(in_the_bridge, version)
    on_the_link()


if __name__ == "__main__":
    main()
