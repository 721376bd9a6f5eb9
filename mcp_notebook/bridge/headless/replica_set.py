"""Serves one notebook with several kernels (replicas), and replaces them when it is saved.

Runs on the bridge's event loop. Clients see one notebook; `bridge.kernels.replicas` chooses the
kernel of each call.

1. The first kernel is started alone, so that a failing cell fails only once, and to measure how
   much memory the others will need. Then the others are started, and the notebook is served once
   all have run its cells. If one cannot be started, the caller gets the error.
2. A kernel that is given up later is left out. The notebook is given up with its last kernel.
3. If the file is watched and saved, new kernels are started for it, unless its code is already
   served or being started. They get the calls once all have run its cells. The old ones end
   `LINGER` seconds after their last call, or right after it if there is an even newer version. If
   the new ones cannot be started, the old ones continue; saving the same code again is another
   attempt.

Each kernel has a `Supervisor`. A kernel that dies is replaced by one with the same version,
whatever the file contains by then.
"""

import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from mcp_notebook.bridge.headless.cell_progress import Progress, QuietProgress, SharedProgress
from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
from mcp_notebook.bridge.headless.machine_limits import (
    allow_open_files,
    count_processors,
    find_free_memory,
    format_bytes,
    measure_kernel,
)
from mcp_notebook.bridge.headless.notebook import Version
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.bridge.headless.restarts import Restarts, start_when_trusted
from mcp_notebook.bridge.headless.supervisor import Replica, Supervisor
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.errors import KernelDied, LinkError, NotebookError, UntrustedNotebook
from mcp_notebook.settings.settings import Settings
from mcp_notebook.settings.values import Count
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import count

LINGER = 60.0
"""Seconds after their last call for which replaced kernels keep the tasks, results and resources of
their calls."""
_LOOK_INTERVAL = 0.5
"""Seconds between two checks whether the file was saved; network file systems send no events."""
_IDLE_INTERVAL = 0.2
"""Seconds between two checks whether a kernel still has calls."""
_STARTS_EACH = 2
"""Kernels to start at a time for each processor; cells also wait for I/O."""


class _Generation:
    """The kernels of one version.

    Args:
        path: The notebook.
        version: The version that they run.
        settings: All options.
        links: Open the links to the kernels.
        tasks: Run the supervisors.
        notebook_id: The notebook's id in the catalogue.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one for each part that it uses
        self,
        path: Path,
        version: Version,
        settings: Settings,
        links: Links,
        tasks: anyio.abc.TaskGroup,
        notebook_id: str,
    ) -> None:
        self._path = path
        self.version = version
        """The version that the kernels run."""
        self._settings = settings
        self._links = links
        self._tasks = tasks
        self._notebook_id = notebook_id
        self.kernel_ids: list[str] = []
        """The ids of the kernels that have been started, in order."""
        self._supervisors: dict[str, Supervisor] = {}
        self._scopes: list[anyio.CancelScope] = []
        self._running = 0
        """Kernels that have not been given up."""
        self.reason = ""
        """Why the last one was given up."""
        self._is_outdated = anyio.Event()
        """Set when the next version has been replaced as well."""

    @property
    def has_kernels(self) -> bool:
        """Whether at least one kernel has not been given up."""
        return self._running > 0

    async def start(
        self, progress: Progress, early: EarlyKernel | None, *, most: int | None = None
    ) -> None:
        """Start all kernels, the first one alone.

        Args:
            progress: Shows the progress of the first one's cells.
            early: The first kernel, if it was started early.
            most: The number of kernels of the first version; None: this is the first.

        Raises:
            NotebookError: A kernel cannot be started, or there is no memory for all of them.
            LinkError: A kernel cannot be linked.
        """
        try:
            await self._start_kernel(progress, early)
            await self._start_others(self._decide_number(most))
        except BaseException:
            self.end()
            raise

    async def _start_others(self, number: int) -> None:
        """Start the kernels after the first one, with limited concurrency."""
        failures: list[NotebookError | LinkError] = []
        limiter = anyio.CapacityLimiter(_STARTS_EACH * count_processors())
        async with anyio.create_task_group() as starts:

            async def start() -> None:
                try:
                    async with limiter:
                        await self._start_kernel(QuietProgress())
                except (NotebookError, LinkError) as error:
                    failures.append(error)
                    starts.cancel_scope.cancel()

            for _ in range(number - 1):
                starts.start_soon(start)
        if failures:
            # The first kernel runs, so the notebook itself works.
            kind = KernelDied if isinstance(failures[0], KernelDied) else NotebookError
            raise kind(
                f"{number} kernels of {self._path.name} could not be started, only fewer: "
                f"choose a smaller --replicas. {failures[0]}"
            )

    def end(self) -> None:
        """End all kernels."""
        for scope in self._scopes:
            scope.cancel()

    async def retire(self, linger: float) -> None:
        """End the kernels after their last calls; they get no new ones.

        Args:
            linger: Seconds after the last call for which tasks, kept results and resources are
                available.
        """
        for each in self._supervisors.values():
            each.retire()
        while any(link.open_calls for link in self._list_links()):  # noqa: ASYNC110 - no event
            await anyio.sleep(_IDLE_INTERVAL)
        with anyio.move_on_after(linger):
            await self._is_outdated.wait()
        self.end()

    def stop_lingering(self) -> None:
        """When retired, end right after the last call: two newer versions have kernels."""
        self._is_outdated.set()

    def _list_links(self) -> list[Link]:
        return [link for link in self._links.open_links if link.record.id in self.kernel_ids]

    async def _start_kernel(self, progress: Progress, early: EarlyKernel | None = None) -> None:
        kernel_id = early.kernel_id if early else make_id()
        self._links.replicas.add(self._notebook_id, kernel_id)
        self.kernel_ids.append(kernel_id)
        supervisor = self._supervisors[kernel_id] = Supervisor(
            self._path,
            self._settings,
            self._links,
            progress,
            early,
            replica=Replica(kernel_id, self.version, is_first=len(self.kernel_ids) == 1),
        )
        await self._tasks.start(partial(self._keep, supervisor))

    async def _keep(
        self,
        supervisor: Supervisor,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Supervise one kernel until it is given up or all kernels are ended."""
        self._running += 1
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            self.reason = await supervisor.run(task_status=task_status)
            is_told_by_caller = self._running == 1 and not self._settings.watch
            if not supervisor.is_retired and not is_told_by_caller:
                print_note(self.reason)
        self._running -= 1

    def _decide_number(self, most: int | None) -> int:
        """Return the number of kernels to run; the first one runs already."""
        links = self._list_links()  # none if it has just died
        each = measure_kernel(links[0].record.pid) if links else 0
        choice, name = self._settings.replicas, self._path.name
        versions = 2 if self._settings.watch and most is None else 1
        free = find_free_memory()
        number = decide_number(choice, name, each=each, free=free, most=most, versions=versions)
        fit = max(1, (1 + allow_open_files(versions * number - 1)) // versions)
        if fit < number and choice != "auto":
            raise NotebookError(
                f"{number} kernels of {name} need more open files than this process may have. "
                f"Start at most {fit} (--replicas {fit}), or raise the limit (`ulimit -Hn`)."
            )
        return min(fit, number)


class ReplicaSet:
    """Serves one notebook with several kernels.

    Args:
        path: The notebook.
        settings: All options: the number of kernels, whether the file is watched.
        links: Open the links to the kernels.
        progress: Shows the progress of the cells.
        early: The first kernel, if it was started early.
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
        self.id = make_id()
        """The notebook's id in the catalogue."""
        self._current: _Generation
        """The kernels that get the calls."""
        self._most: int | None = None
        """The number of kernels of the first version, the maximum for later ones."""
        self._next: Version | None = None
        """The version that is being started."""
        self._retired: _Generation | None = None
        """The previous kernels, which may still have calls."""
        self._ended: list[str] = []
        """The ids of kernels that have ended or are ending."""
        self._tasks: anyio.abc.TaskGroup

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> str:
        """Serve the notebook until it is given up; started when its tools are listed.

        Returns:
            Why it is no longer served.

        Raises:
            NotebookError: A kernel cannot be started, or there is no memory for all of them.
            LinkError: A kernel cannot be linked.
        """
        failure: NotebookError | LinkError | None = None
        # A task group would wrap the error in an exception group.
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

    async def _start(self, version: Version) -> _Generation:
        """Start the kernels of a version, and route calls to them."""
        early, self._early = self._early, None
        generation = _Generation(
            self._path, version, self._settings, self._links, self._tasks, self.id
        )
        try:
            await generation.start(self._progress, early, most=self._most)
        except BaseException:
            self._ended += generation.kernel_ids
            raise
        # Only now: the links of ended kernels may have sent messages until then.
        for kernel_id in self._ended:
            self._links.replicas.remove(kernel_id)
        self._ended.clear()
        self._links.serve_replicas(self.id, generation.kernel_ids)
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
                        print_note(
                            f"{self._path.name} was saved with the code that is already served"
                        )
                    self._next = None
                    continue
                self._next, start = version, anyio.CancelScope()
                starts.start_soon(self._replace, version, start)

    async def _replace(self, version: Version, scope: anyio.CancelScope) -> None:
        """Replace the kernels, if new ones can be started."""
        with scope:
            print_note(f"{self._path.name} was saved and is being run")
            generation = await self._start_when_trusted(version)
            if self._next is version:
                self._next = None
            if generation is None:
                return
            if self._retired is not None:
                self._retired.stop_lingering()
            self._retired, self._current = self._current, generation
            self._tasks.start_soon(self._retire, self._retired)

    async def _start_when_trusted(self, version: Version) -> _Generation | None:
        """Start the kernels of a version that was saved; None if they cannot be started.

        A kernel that dies during this or cannot be linked is started again several times, like a
        served one: it may have been killed.
        """
        restarts = Restarts()
        while True:
            try:
                return await start_when_trusted(partial(self._start, version), self._tell_distrust)
            except (KernelDied, LinkError) as error:
                if restarts.note_failure():
                    self._tell_failure(error)
                    return None
                print_note(f"{error} It is being restarted.")
                await anyio.sleep(restarts.take_delay())
            except NotebookError as error:
                self._tell_failure(error)
                return None

    def _tell_distrust(self, error: UntrustedNotebook) -> None:
        self._tell_failure(error)
        self._next = None  # saving it with outputs, when it is trusted, is another attempt

    def _tell_failure(self, error: NotebookError | LinkError) -> None:
        """Print why the saved version is not served."""
        served = "still served with its previous code"
        state = served if self._current.has_kernels else "still not served"
        print_note(f"{self._path.name} is {state}. {error}")

    async def _retire(self, generation: _Generation) -> None:
        await generation.retire(LINGER)
        self._ended += generation.kernel_ids


async def _watch(
    path: Path, tell_failure: Callable[[NotebookError], None]
) -> AsyncIterator[Version]:
    """Yield the content of a file, now and after each save; never ends."""
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
            if look == failed_look:  # it was not just half written
                tell_failure(error)
                handled_look = look
            failed_look = look
            continue
        handled_look = look
        yield version


def _look(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes when a file is saved; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _has_same_code(version: Version, other: Version) -> bool:
    return describe_code(version[1]) == describe_code(other[1])


def decide_number(  # noqa: PLR0913 - what it depends on
    number: Count,
    name: str,
    *,
    each: int,
    free: int,
    most: int | None = None,
    versions: int = 1,
) -> int:
    """Return the number of kernels for a notebook, including the first, which runs already.

    Args:
        number: A number, or "auto": as many as fit into memory.
        name: The notebook's name, for messages.
        each: Bytes that a kernel needs.
        free: Bytes that are free for further kernels.
        most: The maximum for "auto"; None: one for each processor that this process may use.
        versions: Versions of the notebook that run at a time; "auto" leaves memory for them.

    Raises:
        NotebookError: There is not enough memory for the requested number.
    """
    fit = 1 + free // max(each, 1)
    if isinstance(number, str):
        return max(1, min(fit // versions, most or count_processors()))
    if number > fit:
        raise NotebookError(
            f"There is not enough memory for {number} kernels of {name}: each needs about "
            f"{format_bytes(each)}, and {format_bytes(free)} is free beside the first. Start at "
            f"most {fit} (--replicas {fit}), or as many as fit (--replicas auto)."
        )
    return number
