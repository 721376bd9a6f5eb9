"""Runs one headless notebook, and restarts its kernel when it dies.

Runs on the bridge's event loop, one task per notebook. A restarted kernel's tools return to their
place in the catalogue under their old names, so clients only see that the list changes.

1. If the first start fails, the caller gets the error: there are no clients yet.
2. A kernel that dies is restarted, after a delay that grows with each death: see `restarts`.
3. After several failed starts in a row (the kernel dies while its cells run, or a cell raises an
   exception) the notebook is given up.
4. A notebook that has changed and is no longer trusted has not failed: its calls get an error that
   says so, and it is restarted as soon as it is trusted.
5. A link that fails while its kernel is alive is opened again. A kernel that does not accept it
   counts as dead.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc

from mcp_notebook.bridge.headless.cell_progress import Progress
from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
from mcp_notebook.bridge.headless.notebook import RunningNotebook, Version, run_notebook
from mcp_notebook.bridge.headless.restarts import Restarts, start_when_trusted
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.errors import LinkError, NotebookError, UntrustedNotebook
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note

_RELINK_AFTER = 0.5
"""Seconds between the failure of a link and the next attempt."""
_RETURNS = (
    "It is being restarted, and its tools return when its cells have run again. Try again in a "
    "moment."
)
_OTHERS_ANSWER = "Other kernels of the notebook are available. Call again."


@dataclass(frozen=True)
class Replica:
    """One of several kernels that run the same notebook."""

    kernel_id: str
    """The id of the kernel and of those that replace it."""
    version: Version
    """The version that it runs."""
    is_first: bool
    """Whether it is the one that prints messages about the notebook."""


class Supervisor:
    """Serves one notebook with one kernel.

    Args:
        path: The notebook.
        settings: All options.
        links: Open the link to the kernel.
        progress: Shows the progress of the cells.
        early: The notebook's first kernel, if it was started early.
        replica: The kernel, if the notebook has several; None: the only one.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one for each part that it uses
        self,
        path: Path,
        settings: Settings,
        links: Links,
        progress: Progress,
        early: EarlyKernel | None = None,
        replica: Replica | None = None,
    ) -> None:
        self._path = path
        self._settings = settings
        self._links = links
        self._progress = progress
        self._replica = replica
        self.id = replica.kernel_id if replica else early.kernel_id if early else make_id()
        """The id of the kernel, and of those that replace it."""
        self.is_retired = False
        """Whether its kernel is no longer restarted."""
        self._early = early
        """The first kernel, until it is used."""
        self._restarts = Restarts()

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> str:
        """Serve the notebook until it is given up; started when its tools are listed.

        Returns:
            Why it is no longer served.

        Raises:
            NotebookError: The first start failed: it cannot be run, or offers no tool.
            LinkError: The first start failed: its kernel cannot be linked.
        """
        end = await self._serve(task_status.started)
        while not self.is_retired:
            await self._back_off(end)
            if self.is_retired:
                break
            try:
                end = await start_when_trusted(self._serve, self._tell_distrust)
            except (NotebookError, LinkError, OSError) as error:  # OSError: a full disk
                if self._restarts.note_failure():
                    return self._give_up(str(error))
                print_note(str(error))
                end = "could not be started"
        return f"{self._path.name}: a kernel of an earlier version {end}."

    def retire(self) -> None:
        """Stop restarting the kernel, because it is being replaced."""
        self.is_retired = True

    async def _back_off(self, end: str) -> None:
        delay = self._restarts.take_delay()
        self._set_restarting()
        when = f"in {delay:g} s" if delay else "now"
        print_note(f"{self._path.name}: the kernel {end}. It is being restarted {when}.")
        await anyio.sleep(delay)

    def _tell_distrust(self, error: UntrustedNotebook) -> None:
        self._links.set_away(
            self.id,
            f"The kernel of {error.notebook!r} ended and was not started again, because the "
            "notebook is no longer trusted; it may have changed. Its tools return when its user "
            "has read it and trusts it.",
        )
        print_note(f"{error} Then it is run.")

    def _give_up(self, problem: str) -> str:
        name = self._path.name if self._replica is None else f"A kernel of {self._path.name}"
        failures = self._restarts.failures
        reason = f"{name} is no longer served: {failures} starts in a row failed."
        step = "save it" if self._settings.watch else "start mcp-notebook again"
        self._links.set_away(self.id, f"{reason} Fix the notebook and {step}.", is_final=True)
        return f"{reason} The last failure: {problem}"

    async def _serve(self, started: Callable[[], None] = lambda: None) -> str:
        """Start the kernel and serve it, and return how it ended."""
        early, self._early = self._early, None
        with ExitStack() as display:
            progress = display.enter_context(self._progress.show())
            async with run_notebook(
                self._path,
                self._settings,
                progress=progress,
                kernel_id=self.id,
                early=early,
                version=None if self._replica is None else self._replica.version,
                tells_distrust=self._replica is None or self._replica.is_first,
            ) as notebook:
                display.close()
                return await self._keep_linked(notebook, started)

    async def _keep_linked(self, notebook: RunningNotebook, started: Callable[[], None]) -> str:
        """Keep the kernel linked until its process has ended, and return how."""
        began = anyio.current_time()
        end = await self._link(notebook, started)
        while end is None:
            with anyio.move_on_after(_RELINK_AFTER):
                end = await notebook.wait_for_end()
                break
            try:
                end = await self._link(notebook, lambda: None)
            except LinkError:
                end = "does not answer"
        self._restarts.note_death(anyio.current_time() - began)
        return end

    async def _link(self, notebook: RunningNotebook, started: Callable[[], None]) -> str | None:
        """Link the kernel until the link or the process ends, and return how the process ended."""

        async def describe_end() -> str:
            self._set_restarting()
            what_next = _OTHERS_ANSWER if self._links.replicas.has_other(self.id) else _RETURNS
            return f"{await notebook.describe_end()} {what_next}"

        async with self._links.open_link(notebook.record, describe_end) as link:
            started()
            self._restarts.note_success()
            end = await _wait_for_either(link.end.wait, notebook.wait_for_end)
            if end is not None:
                # A child process of the kernel may still hold the link open.
                link.close(await describe_end())
        return end

    def _set_restarting(self) -> None:
        attempt = self._restarts.failures + 1
        self._links.set_away(
            self.id,
            f"The kernel of {self._path.stem!r} is being restarted (attempt {attempt}). Its tools "
            "return when its cells have run again. Try again in a moment.",
        )


async def _wait_for_either(
    wait_for_link: Callable[[], Awaitable[object]], wait_for_process: Callable[[], Awaitable[str]]
) -> str | None:
    """Wait until a link or a process ends; return how the process ended, None if the link did."""
    end = None

    async with anyio.create_task_group() as tasks:

        async def note_end() -> None:
            nonlocal end
            end = await wait_for_process()
            tasks.cancel_scope.cancel()

        tasks.start_soon(note_end)
        await wait_for_link()
        tasks.cancel_scope.cancel()
    return end
