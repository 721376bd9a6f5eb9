"""One call of a tool, on its way from a client's request to its kernel.

Runs on the bridge's event loop; pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.wire import messages


@dataclass(frozen=True)
class CallParams:
    """The parameters of a ``tools/call``."""

    name: str
    """The tool's name in the client's request."""
    arguments: dict[str, Any] | None = None
    input_responses: Mapping[str, Any] | None = None
    """The user's answers to questions of the same call, by key, as the SDK reads them."""
    request_state: str | None = None
    """What came with those questions."""


@dataclass(eq=False)
class ToolCall:
    """A call that is about to be started; its gates (`gates`) fill in what they find out."""

    request: ClientRequest
    """Of whom and how."""
    params: CallParams
    """What the client has sent."""
    arguments: dict[str, Any] | bytes
    """The tool's arguments; if large, as the client's JSON."""
    listener: Listener
    """Takes what the call sends besides its result."""
    found: CatalogEntry | None = None
    """The tool, once it is known."""
    keep: messages.Keep | None = None
    """What lets the call outlive its client."""

    @property
    def caller(self) -> Caller:
        """Who calls."""
        return self.request.caller

    @property
    def entry(self) -> CatalogEntry:
        """The tool, which is known by now."""
        assert self.found is not None
        return self.found


def identify_request(*parts: Any, arguments: dict[str, Any] | bytes) -> str:
    """Return a short text that differs for requests that differ.

    Args:
        parts: Who asks for what.
        arguments: The call's arguments; if large, as the client's JSON.
    """
    # What is large must not be taken for small arguments that contain its hash.
    large = hashlib.sha256(arguments).hexdigest() if isinstance(arguments, bytes) else None
    text = json.dumps([parts, large, None if large else arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
