"""Serves folders of notebooks: lists them at once, and follows what happens to their files.

Runs on the bridge's event loop; files are looked at and read in worker threads. Folders are looked
at again and again, not watched: that works on every file system, and costs less than watching all
folders below a large one. A change counts when two looks in a row are the same, so that half a file
is not read, and a file that is replaced is not taken for deleted.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.abc
import anyio.to_thread

from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.folders.files import NotebookFile, find_notebooks
from mcp_notebook.bridge.headless.folders.names import make_name
from mcp_notebook.bridge.headless.kernel_room import KernelRoom
from mcp_notebook.bridge.headless.notebook_code import Look, NotebookCode, read_code
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.bridge.kernels.links import ExpectedKernel, Links
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import count

_NOT_OURS = "its code does not use mcp_notebook"


class NotebookFolders:
    """Serves the notebooks in some folders, each with a kernel that starts on call.

    Args:
        folders: The folders.
        settings: All options.
        links: List the notebooks' tools, and open the links to their kernels.
        progress: Shows the progress of their cells.
        besides: Notebooks that are served anyway, and not here, by their names.
        max_kernels: How many of their kernels may run at the same time.
        max_notebooks: Notebooks of all folders; further ones are left out.
        look_interval: Seconds between two looks at the folders, at least.
        share: How many times longer than a look the time between two is: large folders are looked
            at rarely.
        make_notebook: Makes a notebook of theirs.
    """

    def __init__(  # noqa: PLR0913 - what it uses
        self,
        folders: Sequence[Path],
        settings: Settings,
        links: Links,
        progress: SharedProgress,
        besides: Mapping[str, Path] = MappingProxyType({}),
        *,
        max_kernels: int = 64,
        max_notebooks: int = 1_000,
        look_interval: float = 1.0,
        share: float = 20,
        make_notebook: Callable[..., ServedNotebook] = ServedNotebook,
    ) -> None:
        self._folders = [_make_absolute(folder) for folder in folders]
        self._settings = settings
        self._links = links
        self._progress = progress
        self._room = KernelRoom(max_kernels)
        self._max_notebooks = max_notebooks
        self._look_interval = look_interval
        self._share = share
        self._make_notebook = make_notebook
        self._besides = {_make_absolute(path) for path in besides.values()}
        self._taken = frozenset(besides)
        self._notebooks: dict[Path, ServedNotebook] = {}
        """The notebooks that are served, by their paths."""
        self.skipped: dict[Path, str] = {}
        """Why other notebooks and folders are left out, as the end of a sentence."""
        self._handled: dict[Path, Look] = {}
        """How each file looked when it was read."""
        self._last: dict[Path, Look] = {}
        """How all files looked last time."""
        self._new: list[ServedNotebook] = []
        """Those of the notebooks whose task has not been started."""
        self._problem = ""
        """Why the folders cannot be looked at, if they cannot."""

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve the folders; started when what they offer is listed. Runs forever.

        Raises:
            NotebookError: A folder cannot be read.
        """
        await self.list_all()
        print_note(self._describe())
        async with anyio.create_task_group() as tasks:
            self._start_new(tasks)
            task_status.started()
            previous = math.inf
            while True:
                seconds = await self._follow()
                self._start_new(tasks)
                # One look may take long because of something else: the imports of the first call.
                await anyio.sleep(max(self._look_interval, self._share * min(seconds, previous)))
                previous = seconds

    async def list_all(self) -> None:
        """Look at the folders for the first time, and list what they offer.

        Raises:
            NotebookError: A folder cannot be read.
        """
        self._links.expect(await self._look(is_first=True), is_first=True)

    @property
    def names(self) -> dict[str, str]:
        """The notebooks' names, by their ids in the catalogue."""
        return {notebook.id: notebook.name for notebook in self._notebooks.values()}

    async def _follow(self) -> float:
        """List what has changed in the folders, and return how long the look took."""
        began = time.monotonic()
        try:
            self._links.expect(await self._look())
            self._problem = ""
        except NotebookError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                print_note(f"{error} What it had is still listed.")
        return time.monotonic() - began

    def _start_new(self, tasks: anyio.abc.TaskGroup) -> None:
        while self._new:
            tasks.start_soon(self._new.pop().run_on_call, self._room)

    async def _look(self, *, is_first: bool = False) -> list[ExpectedKernel]:
        """Look at the folders, and return what is to be listed anew.

        Args:
            is_first: Whether to believe the first look at a file.

        Raises:
            NotebookError: A folder cannot be read.
        """
        served = frozenset(self._notebooks)
        find = partial(find_notebooks, max_notebooks=self._max_notebooks)
        found = await anyio.to_thread.run_sync(find, self._folders, served)
        for path in self._besides & found.files.keys():
            del found.files[path]
        changed = [
            file
            for path, file in found.files.items()
            if self._handled.get(path) != file.look
            and (is_first or self._last.get(path) == file.look)  # it is not just being written
        ]
        # Files that two looks have missed.
        gone = [path for path in self._handled if not (path in self._last or found.may_have(path))]
        unseen = {path: look for path, look in self._last.items() if found.may_have(path)}
        self._last = unseen | {path: file.look for path, file in found.files.items()}
        reads = map(self._read, changed)  # in the thread
        readings = await anyio.to_thread.run_sync(list, reads) if changed else []
        for path in gone:
            del self._handled[path]
            self._drop(path)
        self.skipped = found.skipped | {
            path: problem for path, problem in self.skipped.items() if path in found.files
        }
        expected = [self._take(*reading) for reading in readings]
        return [kernel for kernel in expected if kernel is not None]

    def _read(self, file: NotebookFile) -> tuple[NotebookFile, ServedNotebook, NotebookCode | str]:
        """Read a file, and what it last offered if it is new; in a worker thread.

        Returns:
            The file, its notebook, and its code, or why it cannot be served.
        """
        notebook = self._notebooks.get(file.path)
        if notebook is None:
            name = make_name(file.path, file.folder, self._folders, self._taken)
            notebook = self._make_notebook(
                file.path, self._settings, self._links, self._progress, name=name, room=self._room
            )
        try:
            if file.path not in self._notebooks:
                notebook.take_offer()
            code = read_code(file.path)
        except NotebookError as error:
            return file, notebook, str(error)
        except OSError as error:
            return file, notebook, f"it cannot be read: {error.strerror}"
        is_ours = code.mentions_us or notebook.has_run_as(code)
        return file, notebook, code if is_ours else _NOT_OURS

    def _take(
        self, file: NotebookFile, notebook: ServedNotebook, code: NotebookCode | str
    ) -> ExpectedKernel | None:
        """Serve a file that was read, or note why it cannot be served."""
        path = file.path
        # One that has no lock is read again: the lock may come later.
        if isinstance(code, NotebookCode) or path in self._notebooks or not self._settings.locked:
            self._handled[path] = file.look
        self.skipped.pop(path, None)
        if isinstance(code, str):
            self.skipped[path] = code
            if code == _NOT_OURS:
                self._drop(path)
            return None
        if path not in self._notebooks:
            self._notebooks[path] = notebook
            self._new.append(notebook)
        return notebook.take_code(code)

    def _drop(self, path: Path) -> None:
        notebook = self._notebooks.pop(path, None)
        if notebook is not None:
            notebook.retire()

    def _describe(self) -> str:
        """Return what is served, for whoever has started it."""
        number = len(self._notebooks)
        unknown = sum(not notebook.has_run for notebook in self._notebooks.values())
        places = ", ".join(map(str, self._folders))
        start = "Each kernel starts when one of its tools is called."
        served = count(number, "notebook") if number else "no notebook that declares a tool yet"
        lines = [f"{places}: {served}. {start}"]
        if unknown:
            lines.append(
                f"{count(unknown, 'notebook has', 'notebooks have')} never run, so clients see "
                "`run_notebook`, and the tools that the source declares."
            )
        if self.skipped:
            left_out = count(len(self.skipped), "file or folder is", "files and folders are")
            lines.append(f"{left_out} left out; `mcp-notebook list --notebook FOLDER` says why.")
        return "\n".join(lines)


def _make_absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - touches no disk
