"""The catalogue of links under test, and waits for what it shows."""

import anyio
from live import TIMEOUT

from mcp_notebook.bridge.kernels.catalog import Catalog


class WatchedCatalog(Catalog):
    """A catalogue that can be waited for."""

    def __init__(self):
        super().__init__()
        self._changed = anyio.Event()

    def _refresh(self, why=None):
        if has_changed := super()._refresh(why):
            self._changed.set()
            self._changed = anyio.Event()
        return has_changed

    async def wait_for(self, *names):
        """Wait until clients see these tools."""
        with anyio.fail_after(TIMEOUT):
            while [entry.name for entry in self.entries()] != list(names):
                await self._changed.wait()

    async def change(self):
        """Wait until what clients see changes."""
        await self._changed.wait()
