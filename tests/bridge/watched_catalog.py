"""The catalogue of links under test, and waits for what it shows."""

import anyio
from live import TIMEOUT

from mcp_notebook.bridge.kernels.catalog import Catalog


class WatchedCatalog(Catalog):
    """A catalogue; `note_change` is what links tell of its changes."""

    def __init__(self):
        super().__init__()
        self._changed = anyio.Event()

    def note_change(self):
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_for(self, *names):
        """Wait until clients see these tools."""
        with anyio.fail_after(TIMEOUT):
            while [entry.name for entry in self.entries()] != list(names):
                await self._changed.wait()

    async def change(self):
        """Wait until what clients see changes."""
        await self._changed.wait()
