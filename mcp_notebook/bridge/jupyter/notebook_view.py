"""An MCP endpoint for the tools of some of the kernels, with a catalogue of its own.

Runs on the bridge's event loop. A bridge behind a Jupyter Server has one for all notebooks, and one
for each notebook that a client asks for: so a tool is called the same there, whatever other
notebooks offer.
"""

from collections.abc import AsyncIterable, Sequence

import anyio
import anyio.abc

from mcp_notebook.bridge.consent.policy import ConsentPolicy
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.tasks.tasks import TaskPolicy
from mcp_notebook.bridge.telemetry.call_events import CallObserver
from mcp_notebook.bridge.transports.endpoint import Endpoint
from mcp_notebook.discovery.records import Record
from mcp_notebook.settings.settings import Settings

SETTLE_LIMIT = 3.0
"""Seconds that live notebooks have to answer before the first list goes out without them."""


class NotebookView:
    """An endpoint for some of the kernels.

    Args:
        settings: All options.
        observers: Hear what happens to calls.
        records: Yields the records of these kernels, now and after each change.
    """

    def __init__(
        self,
        settings: Settings,
        observers: Sequence[CallObserver],
        records: AsyncIterable[tuple[Record, ...]],
    ) -> None:
        self._records = records
        self._ready = anyio.Event()
        self._running = anyio.CancelScope()
        self._catalog = Catalog()
        self.links = Links(
            self._catalog,
            on_change=self._handle_change,
            on_resources=self._handle_resources,
        )
        self._server = NotebookServer(
            self._catalog,
            self.links,
            ready=self._ready.wait,
            observers=observers,
            with_meta_tools=settings.meta_tools,
            page_size=settings.page_size,
            limits=settings,
            tasks=TaskPolicy.from_settings(settings),
            consent=ConsentPolicy.from_settings(settings),
        )
        self.endpoint = Endpoint(self._server, settings)
        """Answers its clients."""

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow the kernels and serve, until this is cancelled."""
        with self._running:
            await self._serve(task_status)

    def close(self) -> None:
        """Serve no more."""
        self._running.cancel()

    async def _serve(self, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self.links, self.endpoint.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._server.announce_changes)
            tasks.start_soon(self.links.follow, self._records)
            task_status.started()
            with anyio.move_on_after(SETTLE_LIMIT):
                await self.links.wait_until_settled()
            self._ready.set()

    def _handle_change(self) -> None:
        self._server.note_change()

    def _handle_resources(self, kernel_id: str) -> None:
        self._server.resource_notices.note_kernel(kernel_id)
