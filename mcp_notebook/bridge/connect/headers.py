"""The HTTP headers of a message that repeat parts of its body.

Pure. Since 2026-07-28, headers repeat the protocol version, the method, the tool's name, and any
argument marked ``x-mcp-header``. The SDK implements the rules.
"""

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)

from mcp_notebook.bridge.connect.messages import Message

_NAMES = {
    **NAME_BEARING_METHODS,
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def list_headers(message: Message) -> dict[str, str]:
    """Return the headers of a message that names the protocol version, {} for older ones."""
    if message.version is None:
        return {}
    headers = {
        MCP_PROTOCOL_VERSION_HEADER: encode_header_value(message.version),
        MCP_METHOD_HEADER: encode_header_value(message.method),
    }
    name = message.params.get(_NAMES.get(message.method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    return headers


class ParameterHeaders:
    """The arguments of tools that headers repeat, learned from lists of tools."""

    def __init__(self) -> None:
        self._maps: dict[str, dict[tuple[str, ...], str]] = {}

    def learn(self, answer: Message) -> None:
        """Learn from the answer to ``tools/list``."""
        tools = answer.result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                schema = tool.get("inputSchema")
                self._maps.pop(tool["name"], None)
                if find_invalid_x_mcp_header(schema) is None and (
                    headers := x_mcp_header_map(schema)
                ):
                    self._maps[tool["name"]] = headers

    def list_headers(self, message: Message) -> dict[str, str]:
        """Return the headers for the arguments of a call."""
        arguments = message.params.get("arguments")
        headers = self._maps.get(str(message.params.get("name")))
        if message.method != "tools/call" or not headers or not isinstance(arguments, dict):
            return {}
        return mcp_param_headers(headers, arguments)
