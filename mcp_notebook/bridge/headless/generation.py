"""The kernels that run one version of a notebook, from their start to their end.

Runs on the bridge's event loop. Each kernel has a `Supervisor`; one that dies is replaced by one
that runs the same version, whatever is in the file by then.
"""

from functools import partial
from pathlib import Path

import anyio
import anyio.abc

from mcp_notebook.bridge.headless.cell_progress import Progress, QuietProgress
from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
from mcp_notebook.bridge.headless.machine_limits import (
    allow_open_files,
    count_processors,
    find_free_memory,
    format_bytes,
    measure_kernel,
)
from mcp_notebook.bridge.headless.notebook import Version
from mcp_notebook.bridge.headless.supervisor import Replica, Supervisor
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import make_id
from mcp_notebook.errors import KernelDied, LinkError, NotebookError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.settings.values import Count
from mcp_notebook.text.terminal import print_note

_IDLE_INTERVAL = 0.2
"""Seconds between two checks whether a kernel still has calls."""
_STARTS_EACH = 2
"""Kernels that start at a time for each processor: cells also wait, such as for files."""


class Generation:
    """The kernels of one version.

    Args:
        path: The notebook.
        version: What they run.
        settings: All options.
        links: Links the kernels.
        tasks: Run what keeps the kernels.
        notebook_id: The notebook's id in the catalogue.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what it uses
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
        """What the kernels run."""
        self._settings = settings
        self._links = links
        self._tasks = tasks
        self._notebook_id = notebook_id
        self.kernel_ids: list[str] = []
        """Of those that have been started, in order."""
        self._supervisors: dict[str, Supervisor] = {}
        self._scopes: list[anyio.CancelScope] = []
        self._running = 0
        """Kernels that have not been given up."""
        self.reason = ""
        """Why the last one was given up."""
        self._is_outdated = anyio.Event()
        """Set when it has been retired, and so has the version after it."""

    @property
    def has_kernels(self) -> bool:
        """Whether not all of them have been given up."""
        return self._running > 0

    async def start(
        self, progress: Progress, early: EarlyKernel | None, *, most: int | None = None
    ) -> None:
        """Start all kernels, the first one alone.

        Args:
            progress: Shows the progress of the first one's cells.
            early: The first one, if it has been started already.
            most: How many the first version got; None: this is the first.

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
        """Start the kernels after the first one, as many at a time as do not slow each other."""
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
            # The first one runs, so what the others died of is no fault of the notebook's.
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
        """Let the kernels, which get no more calls, end when those that they have are over.

        Args:
            linger: Seconds after the last call for which the results of tasks and kept calls, and
                resources, are there.
        """
        for supervisor in self._supervisors.values():
            supervisor.retire()
        while any(link.open_calls for link in self._list_links()):  # noqa: ASYNC110 - no event
            await anyio.sleep(_IDLE_INTERVAL)
        with anyio.move_on_after(linger):
            await self._is_outdated.wait()
        self.end()

    def stop_lingering(self) -> None:
        """Once retired, end with the last call: there are kernels of two later versions."""
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
        """Keep one kernel served until it is given up, or all are ended."""
        self._running += 1
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            self.reason = await supervisor.run(task_status=task_status)
            is_told_by_caller = self._running == 1 and not self._settings.watch
            if not supervisor.is_retired and not is_told_by_caller:
                print_note(self.reason)
        self._running -= 1

    def _decide_number(self, most: int | None) -> int:
        """Return the number of kernels that there are going to be, now that the first one runs."""
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


def decide_number(  # noqa: PLR0913 - what it depends on
    number: Count,
    name: str,
    *,
    each: int,
    free: int,
    most: int | None = None,
    versions: int = 1,
) -> int:
    """Return the number of kernels for a notebook, one of which runs already.

    Args:
        number: A number, or "auto": as many as there is memory for.
        name: The notebook's, for messages.
        each: Bytes that a kernel needs.
        free: Bytes that there are for further ones.
        most: The most for "auto"; None: one for each processor that this process may use.
        versions: Of the notebook, which have kernels at a time; "auto" leaves memory for them.

    Raises:
        NotebookError: There is no memory for as many as were asked for.
    """
    fit = 1 + free // max(each, 1)
    if isinstance(number, str):
        return max(1, min(fit // versions, most or count_processors()))
    if number > fit:
        raise NotebookError(
            f"There is no memory for {number} kernels of {name}: each needs about "
            f"{format_bytes(each)}, and {format_bytes(free)} is free beside the first. Start at "
            f"most {fit} (--replicas {fit}), or as many as fit (--replicas auto)."
        )
    return number
