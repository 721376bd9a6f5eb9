"""Servers of MCP in the test's own process that are linked to a real kernel, and their clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

import anyio
from judge import in_process
from live import TIMEOUT, LiveKernel, record_of
from mcp import Client

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import FirstTools, NotebookServer, ServerOptions
from mcp_notebook.bridge.telemetry.audit_log import AuditLog


class Notes(list):
    """An audit log that keeps what it hears."""

    note_start = note_end = note_refusal = note_view = list.append


def make_server(
    catalog: Catalog,
    links: Links,
    *,
    default_caller: Caller = OWNER,
    audit: AuditLog | None = None,
    **options: Any,
) -> NotebookServer:
    """Return a server.

    Args:
        catalog: The tools.
        links: The links to the kernels.
        default_caller: As for `NotebookServer`.
        audit: As for `NotebookServer`.
        **options: Fields of `ServerOptions` and of `FirstTools`.
    """
    waits = {
        each.name: options.pop(each.name) for each in fields(FirstTools) if each.name in options
    }
    return NotebookServer(
        catalog,
        links,
        ServerOptions(**options),
        first_tools=FirstTools(**waits),
        default_caller=default_caller,
        audit=audit,
    )


@asynccontextmanager
async def linked_server(
    kernel: LiveKernel, **options: Any
) -> AsyncIterator[tuple[NotebookServer, Links]]:
    """Yield a server that is linked to this kernel, and its links."""
    catalog = Catalog()
    async with Links(catalog) as links:
        await links.connect(record_of(kernel))
        server = make_server(catalog, links, **options)
        with anyio.fail_after(TIMEOUT):
            yield server, links


@asynccontextmanager
async def linked_client(
    kernel: LiveKernel, era: str, client_info: Any = None, **options: Any
) -> AsyncIterator[Client]:
    """Yield a client of a server that is linked to this kernel."""
    async with (
        linked_server(kernel, **options) as (server, _),
        Client(in_process(server), mode=era, client_info=client_info) as client,
    ):
        yield client
