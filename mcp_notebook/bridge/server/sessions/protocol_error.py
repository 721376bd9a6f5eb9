"""JSON-RPC's error as the answer to a request.

Pure. Raised by everything that answers requests. `sdk_server` translates it to the SDK's own error
for the SDK; calls into the SDK translate in the other direction.
"""

from typing import Any

from pydantic_core import to_json

from mcp_notebook.errors import McpNotebookError

PARSE_ERROR = -32700
CONNECTION_CLOSED = -32000
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
HEADER_MISMATCH = -32020


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
        return to_json({"jsonrpc": "2.0", "id": request_id, "error": self.form})


def refuse_capabilities(message: str, capabilities: dict[str, Any]) -> ProtocolError:
    """Return the error for a client of 2026-07-28 that has not declared what a request needs.

    Args:
        message: For people and models.
        capabilities: The missing capabilities, in the form in which clients declare them.
    """
    data = {"requiredCapabilities": capabilities}
    return ProtocolError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)
