"""Keeps one notebook served by several kernels, its replicas, and by new ones when it is saved.

Runs on the bridge's event loop. The notebook is one to clients, and `bridge.kernels.replicas`
chooses the kernel of each call.

1. The first kernel is started alone: a cell that fails, fails once, and it tells how much memory
   the others will need. Then the others are started, and the notebook is served when all have run
   its cells. If one cannot be started, the caller gets the error.
2. A kernel that is given up later is left out. The notebook is given up with the last one.
3. If the file is watched and is saved, new kernels are started for it, unless it has the code that
   is served or being started. They get the calls when all have run its cells; the old ones end
   `LINGER` after their last call, or with it if there is a still newer version. If the new ones
   cannot be started, the old ones go on; the same code saved again is another attempt.
"""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from mcp_notebook.bridge.headless import supervisor
from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
from mcp_notebook.bridge.headless.generation import Generation
from mcp_notebook.bridge.headless.kernel_process import find_kernel_name
from mcp_notebook.bridge.headless.notebook import Version
from mcp_notebook.bridge.headless.notebook_reader import list_code_cells, read_notebook
from mcp_notebook.bridge.headless.supervisor import TRUST_INTERVAL
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import make_id
from mcp_notebook.errors import KernelDied, LinkError, NotebookError, UntrustedNotebook
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import count

LINGER = 60.0
"""Seconds after the last call of a version that has been replaced for which its kernels have the
tasks, kept results and resources of their calls."""
_LOOK_INTERVAL = 0.5
"""Seconds between two looks whether the file has been saved: it may be on a network disk, where
nobody tells."""


class ReplicaSet:
    """Keeps one notebook served by several kernels.

    Args:
        path: The notebook.
        settings: All options; they say how many kernels, and whether the file is watched.
        links: Links the kernels.
        progress: Shows the progress of the cells.
        early: The first kernel, if it has been started already.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        links: Links,
        progress: SharedProgress,
        early: EarlyKernel | None = None,
    ) -> None:
        self._path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - touches no disk
        self._settings = settings
        self._links = links
        self._progress = progress
        self._early = early
        """The first kernel, until it is used."""
        self._id = make_id()
        """Of the notebook, in the catalogue."""
        self._current: Generation
        """The kernels that get the calls."""
        self._most: int | None = None
        """As many kernels as the first version got, which no later one exceeds."""
        self._next: Version | None = None
        """What is being started; None also while that cannot be done."""
        self._retired: Generation | None = None
        """Those that got them last before, and may still have some."""
        self._ended: list[str] = []
        """The ids of kernels that have ended, or are about to."""
        self._tasks: anyio.abc.TaskGroup

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> str:
        """Serve the notebook until it has to be given up; started when its tools are there.

        Returns:
            Why it is no longer served.

        Raises:
            NotebookError: A kernel cannot be started, or there is no memory for all of them.
            LinkError: A kernel cannot be linked.
        """
        failure: NotebookError | LinkError | None = None
        # A task group would wrap the failure in a group, so carry it out by hand.
        async with anyio.create_task_group() as self._tasks:
            try:
                version = read_notebook(self._path)
                self._current = await self._start(version)
                self._most = len(self._current.kernel_ids)
            except (NotebookError, LinkError) as error:
                failure = error
                self._tasks.cancel_scope.cancel()
            else:
                task_status.started()
                if self._settings.watch:
                    self._tasks.start_soon(self._follow_file)
        if failure is not None:
            raise failure
        return self._current.reason

    async def _start(self, version: Version) -> Generation:
        """Start the kernels of a version, and let them get the calls."""
        early, self._early = self._early, None
        generation = Generation(
            self._path, version, self._settings, self._links, self._tasks, self._id
        )
        try:
            await generation.start(self._progress, early, most=self._most)
        except BaseException:
            self._ended += generation.kernel_ids
            raise
        # Not when they were ended: their links may have had something to say since.
        for kernel_id in self._ended:
            self._links.replicas.remove(kernel_id)
        self._ended.clear()
        self._links.serve_replicas(self._id, generation.kernel_ids)
        kernels = count(len(generation.kernel_ids), "kernel has", "kernels have")
        print_note(f"{self._path.name}: {kernels} run its cells")
        return generation

    # -- a file that is saved ----------------------------------------------------------------------

    async def _follow_file(self) -> None:
        """Serve each version of the file; runs forever."""
        start = anyio.CancelScope()
        async with anyio.create_task_group() as starts:
            async for version in _watch(self._path, self._tell_failure):
                if self._next is not None and _has_same_code(version, self._next):
                    continue
                start.cancel()  # of a version that is out of date before it serves
                if self._current.has_kernels and _has_same_code(version, self._current.version):
                    if self._next is not None:
                        print_note(f"{self._path.name} was saved as it is served")
                    self._next = None
                    continue
                self._next, start = version, anyio.CancelScope()
                starts.start_soon(self._replace, version, start)

    async def _replace(self, version: Version, scope: anyio.CancelScope) -> None:
        """Let new kernels take over, if they can be started."""
        with scope:
            print_note(f"{self._path.name} was saved, and is being run")
            generation = await self._start_when_trusted(version)
            if self._next is version:
                self._next = None
            if generation is None:
                return
            if self._retired is not None:
                self._retired.stop_lingering()
            self._retired, self._current = self._current, generation
            self._tasks.start_soon(self._retire, self._retired)

    async def _start_when_trusted(self, version: Version) -> Generation | None:
        """Start the kernels of a version that was saved; None if they cannot be started.

        A kernel that dies meanwhile, or cannot be linked, gets several attempts, like one that is
        served: it may have been killed.
        """
        is_told, failures = False, 0
        while True:
            try:
                return await self._start(version)
            except (KernelDied, LinkError) as error:
                failures += 1
                if failures == supervisor.MAX_FAILURES:
                    self._tell_failure(error)
                    return None
                print_note(f"{error} It is started again.")
                await anyio.sleep(supervisor.FIRST_DELAY * (failures - 1))
                continue
            except NotebookError as error:
                if not is_told:
                    self._tell_failure(error)
                if not isinstance(error, UntrustedNotebook):
                    return None
                is_told = True
                self._next = None  # it may be saved again, with outputs, when it is trusted
            await anyio.sleep(TRUST_INTERVAL)

    def _tell_failure(self, error: NotebookError | LinkError) -> None:
        """Say why what was saved is not served."""
        served = "served as it was before it was saved"
        state = served if self._current.has_kernels else "still not served"
        print_note(f"{self._path.name} is {state}. {error}")

    async def _retire(self, generation: Generation) -> None:
        await generation.retire(LINGER)
        self._ended += generation.kernel_ids


async def _watch(
    path: Path, tell_failure: Callable[[NotebookError], None]
) -> AsyncIterator[Version]:
    """Yield what is in a file, now and whenever it has been saved; never end."""
    handled_look: object = None
    failed_look: object = ""
    while True:
        await anyio.sleep(_LOOK_INTERVAL)
        look = await anyio.to_thread.run_sync(_look, path)
        if look == handled_look:
            continue
        try:
            version = await anyio.to_thread.run_sync(read_notebook, path)
        except NotebookError as error:
            if look == failed_look:  # not just half written
                tell_failure(error)
                handled_look = look
            failed_look = look
            continue
        handled_look = look
        yield version


def _look(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is saved; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _has_same_code(version: Version, other: Version) -> bool:
    return _describe_code(version) == _describe_code(other)


def _describe_code(version: Version) -> tuple[object, ...]:
    """Return what a kernel does with a notebook: outputs and looks do not count."""
    notebook = list_code_cells(version[1])
    cells = [(cell.source, cell.metadata.get("tags", [])) for cell in notebook.cells]
    return find_kernel_name(notebook.metadata), cells
