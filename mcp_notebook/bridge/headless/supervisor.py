"""Keeps one headless notebook served: starts it, and starts it again when its kernel dies.

Runs in the bridge, one task for each notebook. The kernel's tools go and come back in their place
of the catalogue, under their names, so that clients see a list that changes and nothing else. How a
kernel is started and its cells run is `bridge.headless.notebook`' business.

1. A first start that fails is the caller's: nobody is served yet, and somebody looks at it.
2. A kernel that dies is started again: at once, then after `FIRST_DELAY`, twice as long each time,
   at most `LONGEST_DELAY`. One that has lived for `STEADY_AFTER` begins anew.
3. `MAX_FAILURES` starts that fail in a row (the kernel dies while its cells run, or one of them
   raises) end it: more of them would hardly help.
4. A link that fails while the kernel lives is made again; if the kernel does not take it, it counts
   as dead.
"""

import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.abc

from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.notebook import RunningNotebook, run_notebook
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery import new_id
from mcp_notebook.errors import LinkError, NotebookError
from mcp_notebook.settings import Settings

FIRST_DELAY = 1.0
"""Seconds until the second restart; the first is at once."""
LONGEST_DELAY = 30.0
"""Seconds between a death and the next start, at most."""
STEADY_AFTER = 60.0
"""Seconds that a kernel must live for its death to count as the first."""
MAX_FAILURES = 3
"""Starts in a row that may fail."""
_RELINK_AFTER = 0.5
"""Seconds between a link's failure and the next try."""


class Supervisor:
    """Keeps one notebook served.

    Args:
        path: The notebook.
        settings: All options.
        links: Gets the kernel.
        progress: Shows how far the cells are.
    """

    def __init__(
        self, path: Path, settings: Settings, links: Links, progress: SharedProgress
    ) -> None:
        self._path = path
        self._settings = settings
        self._links = links
        self._progress = progress
        self._id = new_id()
        self._delay = 0.0
        """Seconds to wait before the next restart."""
        self._failures = 0
        """Starts in a row that failed."""

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> str:
        """Serve the notebook, for ever if it can be; started when its tools are there.

        Returns:
            Why it is not served any more.

        Raises:
            NotebookError: It cannot be run, or offers no tool: the first start failed.
            LinkError: It cannot be linked; as before.
        """
        how = await self._serve(task_status.started)
        while True:
            await self._back_off(how)
            try:
                how = await self._serve(lambda: None)
            except (NotebookError, LinkError, OSError) as error:  # OSError: a full disk
                self._failures += 1
                if self._failures == MAX_FAILURES:
                    return self._give_up(str(error))
                _say(str(error))
                how = "could not be started"

    async def _back_off(self, how: str) -> None:
        delay, self._delay = self._delay, min(max(2 * self._delay, FIRST_DELAY), LONGEST_DELAY)
        self._set_restarting()
        when = f"in {delay:g} s" if delay else "now"
        _say(f"{self._path.name}: the kernel {how}; it is started again {when}.")
        await anyio.sleep(delay)

    def _give_up(self, problem: str) -> str:
        name = self._path.name
        reason = f"{name} is not served any more: {MAX_FAILURES} starts in a row failed."
        self._links.set_away(self._id, f"{reason} Mend it and start mcp-notebook again.")
        return f"{reason} The last one: {problem}"

    async def _serve(self, started: Callable[[], None]) -> str:
        """Start the kernel and serve it; return how it ended."""
        with ExitStack() as showing:
            progress = showing.enter_context(self._progress.shown())
            async with run_notebook(
                self._path, self._settings, progress=progress, kernel_id=self._id
            ) as notebook:
                showing.close()
                return await self._keep_linked(notebook, started)

    async def _keep_linked(self, notebook: RunningNotebook, started: Callable[[], None]) -> str:
        """Link the kernel until its process has ended; return how."""
        began = anyio.current_time()
        how = await self._link(notebook, started)
        while how is None:
            with anyio.move_on_after(_RELINK_AFTER):
                how = await notebook.ended()
                break
            try:
                how = await self._link(notebook, lambda: None)
            except LinkError:
                how = "does not answer"
        if anyio.current_time() - began > STEADY_AFTER:
            self._delay = 0.0
        return how

    async def _link(self, notebook: RunningNotebook, started: Callable[[], None]) -> str | None:
        """Link the kernel until the link or the process ends; return how the process did."""

        async def obituary() -> str:
            self._set_restarting()
            return (
                f"{await notebook.obituary()} It is being restarted, and its tools come back when "
                "its cells have run again: try again in a moment."
            )

        async with self._links.linked_to(notebook.record, obituary) as link:
            started()
            self._failures = 0
            how = await _first_of(link.ended.wait, notebook.ended)
            if how is not None:
                # A process that the kernel left behind may hold its end of the link.
                link.close(await obituary())
        return how

    def _set_restarting(self) -> None:
        self._links.set_away(
            self._id,
            f"The kernel of {self._path.stem!r} is being restarted (attempt {self._failures + 1}). "
            "Its tools come back when its cells have run again: try again in a moment.",
        )


async def _first_of(
    link_ended: Callable[[], Awaitable[object]], process_ended: Callable[[], Awaitable[str]]
) -> str | None:
    """Wait for a link's end or a process's; return how the process ended, None: it may live."""
    how = None

    async with anyio.create_task_group() as tasks:

        async def wait_for_process() -> None:
            nonlocal how
            how = await process_ended()
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait_for_process)
        await link_ended()
        tasks.cancel_scope.cancel()
    return how


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - for the person who started it
