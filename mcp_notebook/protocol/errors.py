"""The errors of JSON-RPC and MCP, and the statuses of HTTP answers that have them.

Pure. Raised by everything that answers requests. JSON-RPC's codes:
https://www.jsonrpc.org/specification#error_object; MCP's:
https://modelcontextprotocol.io/specification/2026-07-28/basic
"""

from collections.abc import Mapping
from typing import Any

from mcp_notebook.errors import McpNotebookError
from mcp_notebook.lean_json import to_json

# JSON-RPC 2.0, 5.1 "Error object"
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# MCP 2026-07-28, "Error Codes" of the base protocol
HEADER_MISMATCH = -32020  # and "Server Validation" of Streamable HTTP
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
CONNECTION_CLOSED = -32000
"""Our own code: the bridge stopped, or the connection closed, before the answer."""
REQUEST_CANCELLED = -32800
"""Of the language server protocol: a client up to 2025-11-25 that cancels its request over HTTP
needs an answer, which ends the response."""
HTTP_STATUSES: Mapping[int, int] = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS), 400),
    **dict.fromkeys((HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY), 400),
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""HTTP status by error code, since 2026-07-28; 200 for all other codes."""


class ProtocolError(McpNotebookError):
    """The answer to a request is an error.

    Args:
        code: An error code of JSON-RPC or MCP.
        message: For people and models.
        data: Data for programs, if any.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def form(self) -> dict[str, Any]:
        """The error object of the JSON-RPC message."""
        form = {"code": self.code, "message": self.message}
        return form if self.data is None else form | {"data": self.data}

    def write_answer(self, request_id: int | str | None) -> bytes:
        """Return the JSON-RPC message that answers a request with this error.

        Args:
            request_id: The request's id; None if it is unknown.
        """
        message = {"jsonrpc": "2.0", "id": request_id, "error": self.form}
        return to_json(message)


def refuse_capabilities(message: str, capabilities: dict[str, Any]) -> ProtocolError:
    """Return the error for a client of 2026-07-28 that has not declared what a request needs.

    Args:
        message: For people and models.
        capabilities: The missing capabilities, in the form in which clients declare them.
    """
    data = {"requiredCapabilities": capabilities}
    return ProtocolError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)
