"""Who makes a request: the caller, and the client's program.

Runs on the bridge's event loop; no I/O.
"""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import InitializeRequestParams

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.wire import messages

MOST_OF_NAME = 200
"""Characters of the name or the version of a client's program."""


def find_caller(ctx: ServerRequestContext[Any], default: Caller) -> Caller:
    """Return the caller of a request.

    Args:
        ctx: The request.
        default: Who it is if the transport does not say: over stdio, whoever started the bridge.
    """
    scope = getattr(ctx.request, "scope", None) or {}
    caller = scope.get(SCOPE_KEY, default)
    assert isinstance(caller, Caller)
    return caller


def find_client(ctx: ServerRequestContext[Any]) -> messages.ClientInfo:
    """Return name and version of the client's program, as it says; empty if it does not say."""
    return describe_program(ctx.session.client_params)


def describe_program(params: InitializeRequestParams | None) -> messages.ClientInfo:
    """Return name and version of a client's program, of all that it says of itself."""
    if params is None:
        return messages.ClientInfo()
    info = params.client_info
    return messages.ClientInfo(name=info.name[:MOST_OF_NAME], version=info.version[:MOST_OF_NAME])
