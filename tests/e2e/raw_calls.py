"""Calls of tools by hand."""

from typing import Any

import httpx2
from clients import HEADERS, INITIALIZED, answer_of, http_client, initialize

ELICITATION = {"elicitation": {}}
MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"


def make_request(
    name: str, *, capabilities: dict[str, Any] | None = None, **arguments: Any
) -> dict[str, Any]:
    """Return a call in the form of 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def post_call(
    url: str, name: str, *, token: str | None = None, **options: Any
) -> httpx2.Response:
    """Post a call in the form of 2026-07-28.

    Args:
        url: The endpoint.
        name: The tool.
        token: The bearer token; None for the tests' own.
        **options: As for `make_request`.
    """
    headers = HEADERS | {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    async with http_client(headers=headers) as http:
        return await http.post(url, json=make_request(name, **options))


async def post_older_call(
    url: str,
    name: str,
    *,
    token: str | None = None,
    capabilities: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Post a call in a session of 2025-11-25, and return its result."""
    headers = HEADERS if token is None else HEADERS | {"Authorization": f"Bearer {token}"}
    async with http_client(headers=headers) as http:
        opened = await http.post(url, json=initialize(HANDSHAKE, capabilities))
        http.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        http.headers["MCP-Protocol-Version"] = HANDSHAKE
        await http.post(url, json=INITIALIZED)
        request = make_request(name)
        del request["params"]["_meta"]
        result: dict[str, Any] = answer_of(await http.post(url, json=request))["result"]
        return result
