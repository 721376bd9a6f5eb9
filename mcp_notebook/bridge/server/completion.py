"""Answers requests to complete an argument of a prompt, or a variable of a resource's template.

Runs on the bridge's event loop. The kernel knows the values; a kernel that is busy with Python code
answers as well, and one that does not answer in time has no values. To type starts no kernel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.forms.result_forms import replace_surrogates
from mcp_notebook.bridge.server.resources.declared_resources import MAX_SHOWN
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.errors import CallError, KernelGone, UnknownTool
from mcp_notebook.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_notebook.protocol.methods import (
    CompleteParameters,
    PromptReference,
    TemplateReference,
)
from mcp_notebook.text.wording import list_close_words, shorten


class Completion:
    """Completes arguments for the clients of one bridge.

    Args:
        tools: The prompts and resources, as callers see them.
        links: The links to the kernels.
        ready: Waits until the first tools can be expected, if they need time to appear.
    """

    def __init__(
        self,
        tools: PermittedTools,
        links: Links,
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self._tools = tools
        self._ready = ready
        self._links = links

    async def complete(self, request: ClientRequest, params: CompleteParameters) -> dict[str, Any]:
        """Answer ``completion/complete``.

        Raises:
            ProtocolError: The caller sees no such prompt or template.
        """
        caller = request.caller
        known = {} if params.context is None else params.context.arguments or {}
        typed = params.argument
        await self._ready()
        try:
            entry = self._find(caller, params.ref)
            requests = self._links.find_link(entry).requests
            found = await requests.complete(
                entry.tool.name, typed.name, typed.value, known, guest=caller.guest
            )
        except KernelGone:
            return {"completion": {"values": []}}
        except CallError as error:
            raise ProtocolError(INVALID_PARAMS, str(error)) from None
        values = [*map(replace_surrogates, found.values)]
        more = found.total > len(values)
        return {"completion": {"values": values, "total": found.total, "hasMore": more}}

    def _find(self, caller: Caller, reference: PromptReference | TemplateReference) -> CatalogEntry:
        if isinstance(reference, PromptReference):
            return self._tools.find(caller, reference.name, "prompt")
        templates = self._tools.list_entries(caller, "resource")
        for entry in templates:
            if entry.uri == reference.uri:
                return entry
        names = tuple(entry.uri for entry in templates)
        uri = shorten(reference.uri, MAX_SHOWN)
        close = list_close_words(uri, names)
        others = (name for name in names if name not in close)
        raise UnknownTool(uri, (*close, *others), "resource")
