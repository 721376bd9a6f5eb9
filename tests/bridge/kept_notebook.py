"""A headless notebook that is kept served in the test's own process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import notebook_files
import psutil
import pytest
from live import TIMEOUT, text_of
from watched_catalog import WatchedCatalog

from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.restarts import Restarts
from mcp_notebook.bridge.headless.saved_notebook import SavedNotebook
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.errors import KernelGone
from mcp_notebook.settings.settings import Settings


def write_notebook(folder: Path, *cells: str, name: str = "sums.ipynb") -> Path:
    """Write a notebook that loads the extension and has these cells."""
    return notebook_files.write_notebook(folder / name, "%load_ext mcp_notebook", *cells)


class KeptNotebook:
    """A notebook that is kept served, and waits for what is seen of it."""

    def __init__(self) -> None:
        self.catalog = WatchedCatalog()
        self.links = Links(self.catalog)
        self.keeper: Any = None
        """What keeps it."""
        self.ended = anyio.Event()
        self.reason: str | None = None

    async def call(self, name: str, **arguments: Any) -> str:
        """Call a tool as clients do, and return the text of its result."""
        await self.links.wait_for_kernel(self.catalog.find(name), errors="full")
        return text_of(await self.links.call(self.catalog.find(name), arguments))

    async def pid(self) -> int:
        """Return the process that answers."""
        return int(await self.call("pid"))

    async def gone(self, name: str, **arguments: Any) -> str:
        """Make a call that its kernel does not survive, and return what it is told."""
        with pytest.raises(KernelGone) as caught, anyio.fail_after(TIMEOUT):
            await self.call(name, **arguments)
        return str(caught.value)

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep it served."""
        self.reason = await self.keeper.run(task_status=task_status)
        self.ended.set()


@asynccontextmanager
async def kept_notebook(
    path: Path, home: Path, *, first_delay: float = 0.05, **options: Any
) -> AsyncIterator[KeptNotebook]:
    """Keep a notebook served for the block."""
    here = KeptNotebook()
    settings = Settings(home=home / "state", **options)
    restarts = Restarts(first_delay=first_delay, trust_interval=0.02)
    here.keeper = ServedNotebook(path, settings, here.links, SharedProgress(), restarts=restarts)
    if settings.watch:
        here.keeper = SavedNotebook(here.keeper, look_interval=0.02)
    async with here.links, anyio.create_task_group() as tasks:
        await tasks.start(here.run)
        yield here
        tasks.cancel_scope.cancel()
    assert psutil.Process().children() == []
