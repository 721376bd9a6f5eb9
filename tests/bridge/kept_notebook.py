"""A headless notebook that is kept served in the test's own process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import nbformat
import psutil
import pytest
from live import TIMEOUT, text_of
from watched_catalog import WatchedCatalog

from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.errors import KernelGone
from mcp_notebook.settings.settings import Settings


def write_notebook(folder: Path, *cells: str, name: str = "sums.ipynb") -> Path:
    """Write a notebook that loads the extension and has these cells."""
    path = folder / name
    made = [nbformat.v4.new_code_cell(cell) for cell in ("%load_ext mcp_notebook", *cells)]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


class KeptNotebook:
    """A notebook that is kept served, and waits for what is seen of it."""

    def __init__(self) -> None:
        self.catalog = WatchedCatalog()
        self.links = Links(self.catalog, on_change=self.catalog.note_change)
        self.keeper: Any = None
        """The supervisor or the set of replicas that keeps it."""
        self.ended = anyio.Event()
        self.reason: str | None = None

    async def call(self, name: str, **arguments: Any) -> str:
        """Call a tool, and return the text of its result."""
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
    make_keeper: Any, path: Path, home: Path, **options: Any
) -> AsyncIterator[KeptNotebook]:
    """Keep a notebook served for the block, by a `Supervisor` or a `ReplicaSet`."""
    here = KeptNotebook()
    settings = Settings(home=home / "state", **options)
    here.keeper = make_keeper(path, settings, here.links, SharedProgress())
    async with here.links, anyio.create_task_group() as tasks:
        await tasks.start(here.run)
        yield here
        tasks.cancel_scope.cancel()
    assert psutil.Process().children() == []
