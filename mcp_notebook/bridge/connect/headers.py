"""The HTTP headers of a client's message that repeat parts of its body.

Pure. Since 2026-07-28, headers repeat the protocol version, the method, what the method names, and
the arguments that a tool's schema marks (`protocol.headers`, `protocol.parameter_headers`).
"""

from collections.abc import Sequence

from mcp_notebook.bridge.connect.messages import Message
from mcp_notebook.protocol import headers
from mcp_notebook.protocol.parameter_headers import (
    ParameterHeader,
    list_parameter_headers,
    write_parameter_headers,
)


def list_headers(message: Message) -> dict[str, str]:
    """Return the headers of a message that names the protocol version, {} for older ones."""
    return headers.list_headers(message.method, message.params)


class ParameterHeaders:
    """The arguments of tools that headers repeat, learned from lists of tools."""

    def __init__(self) -> None:
        self._headers: dict[str, Sequence[ParameterHeader]] = {}

    def learn(self, answer: Message) -> None:
        """Learn from the answer to ``tools/list``."""
        tools = answer.result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._headers[tool["name"]] = list_parameter_headers(tool.get("inputSchema"))

    def list_headers(self, message: Message) -> dict[str, str]:
        """Return the headers for the arguments of a call."""
        arguments = message.params.get("arguments")
        known = self._headers.get(str(message.params.get("name")), ())
        if message.method != "tools/call" or not isinstance(arguments, dict):
            return {}
        return write_parameter_headers(known, arguments)
