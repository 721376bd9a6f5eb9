"""A folder that is served in the test's own process, with real kernels."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import psutil
from live import TIMEOUT, text_of
from watched_catalog import WatchedCatalog

from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.folders.folder import NotebookFolders
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.bridge.headless.offers import keep_offer
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, Listener
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire.messages import ToolInfo

LOAD = "%load_ext mcp_notebook"
PID = """%%mcp_tool
import os, signal

def pid() -> int:
    "The kernel's process."
    return os.getpid()

def suicide() -> None:
    "Kills the process."
    os.kill(os.getpid(), signal.SIGKILL)
"""


def offer(home: Path, path: Path, *names: str, **options: Any) -> None:
    """Note that a notebook offered these tools when it last ran, with the code it has now."""
    tools = [ToolInfo(name=name, input_schema={"type": "object"}, **options) for name in names]
    code = describe_code(read_notebook(path)[1])
    keep_offer(home / "state", path, code, path.stem, tools)


class ServedFolder:
    """A folder that is served, and waits for what is seen of it."""

    def __init__(  # noqa: PLR0913 - what a folder takes
        self,
        folders: list[Path],
        home: Path,
        besides: Mapping[str, Path] = MappingProxyType({}),
        *,
        max_kernels: int = 64,
        max_notebooks: int = 1_000,
        look_interval: float = 0.02,
        make_notebook: Callable[..., ServedNotebook] = ServedNotebook,
        **options: Any,
    ) -> None:
        self.catalog = WatchedCatalog()
        self.links = Links(self.catalog)
        settings = Settings(home=home / "state", **options)
        self.folders = NotebookFolders(
            folders,
            settings,
            self.links,
            SharedProgress(),
            besides,
            max_kernels=max_kernels,
            max_notebooks=max_notebooks,
            look_interval=look_interval,
            share=0,
            make_notebook=make_notebook,
        )

    def list_names(self, kind: str = "tool") -> list[str]:
        """Return what clients see."""
        return [entry.name for entry in self.catalog.entries(kind)]

    async def call(
        self, name: str, listener: Listener = NO_LISTENER, *, guest: str = "", **arguments: Any
    ) -> str:
        """Call a tool as clients do, and return the text of its result."""
        entry = self.catalog.find(name)
        await self.links.wait_for_kernel(entry, listener, errors="full", guest=guest)
        return text_of(await self.links.call(self.catalog.find(name), arguments))

    async def until(self, condition: Any) -> None:
        """Wait until a condition is true after a change of the catalogue or of the links."""
        with anyio.fail_after(TIMEOUT):
            while not condition():
                with anyio.move_on_after(0.05):
                    await self.catalog.change()


@asynccontextmanager
async def served_folder(folder: Path, home: Path, **options: Any) -> AsyncIterator[ServedFolder]:
    """Serve a folder for the block."""
    here = ServedFolder([folder], home, **options)
    async with here.links, anyio.create_task_group() as tasks:
        await tasks.start(here.folders.run)
        yield here
        tasks.cancel_scope.cancel()
    assert psutil.Process().children() == []
