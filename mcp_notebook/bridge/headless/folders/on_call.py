"""One notebook whose kernel starts when a call needs it, and ends when it is no longer used.

Runs on the bridge's event loop, one task per notebook. Its states (`KernelState`), each in
`OnCallNotebook.run`:

1. Asleep: there is no kernel. What the notebook last offered is listed; a call wakes it.
2. Starting: the kernel runs the cells, and calls wait. If that fails, they get the reason, and the
   notebook is asleep again; until its file changes, or a minute has passed, later calls get the
   same reason at once. If there is no room for a kernel, or the file no longer has the code that a
   person agreed to, later calls try again. If the file is deleted, the start ends.
3. Awake: the kernel is linked, and its own list replaces the last one.
4. Ending: it has not been used for a while, another notebook needs its room, its code has changed,
   its file is gone, or its process has died. It is asleep again before the link is closed, so calls
   wake it as soon as it has ended.

Nothing is restarted while no call needs it: a kernel that crashes costs its own calls, no more.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.bridge.headless.cell_progress import CellProgress, SharedProgress
from mcp_notebook.bridge.headless.folders.files import Look, look_at
from mcp_notebook.bridge.headless.folders.kernel_room import SPARED, KernelRoom, KernelState
from mcp_notebook.bridge.headless.machine_limits import measure_kernel
from mcp_notebook.bridge.headless.notebook_code import NotebookCode, hash_code, read_code
from mcp_notebook.bridge.headless.offers import drop_offer, find_last_offer
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import ExpectedKernel, Links, StartFailure
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.errors import CodeChanged, LinkError, NoRoom, NotebookError, OffersNothing
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import explain_deleted_notebook
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import format_seconds
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp_notebook.bridge.headless.notebook import RunningNotebook, Version

logger = logging.getLogger(__name__)

RETRY_AFTER = 60.0
"""Seconds after which a notebook that failed is tried again although its file has not changed."""
_LEAST_IDLE = 0.2
"""Seconds that a kernel is kept after its last call, whatever the settings say: its client may be
reading the resources of the result."""
_LOST = "The kernel of {name!r} {end}, and the call was lost. The next call starts it again."


class OnCallNotebook:
    """Serves one notebook with a kernel that starts on call.

    Args:
        path: The notebook's absolute path.
        name: Its name for clients.
        settings: All options.
        links: List its tools, and open the link to its kernel.
        progress: Shows the progress of its cells.
        room: Makes room for its kernel.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one for each part that it uses
        self,
        path: Path,
        name: str,
        settings: Settings,
        links: Links,
        progress: SharedProgress,
        room: KernelRoom,
    ) -> None:
        self.path = path
        self.name = name
        self._settings = settings
        self._links = links
        self._progress = progress
        self._room = room
        self.id = make_id()
        """Its id in the catalogue, and that of its kernel."""
        self._code: NotebookCode | None = None
        """What the file has."""
        self._ran: str | None = None
        """The digest of the code that made these tools; None if it has never run."""
        self._tools: tuple[messages.ToolInfo, ...] = ()
        """What it offered when it last ran."""
        self._wanted = anyio.Event()
        """Set when a call needs the kernel."""
        self._agreed: str | None = None
        """The digest of the code that the waking call may run; None: whatever the file has."""
        self._start: anyio.CancelScope | None = None
        """Cancelled if the notebook is retired before its cells have run."""
        self._link: Link | None = None
        """The link to its last kernel."""
        self._makes_way = anyio.Event()
        """Set when another notebook needs the kernel's room."""
        self._memory = 0
        """Bytes that its kernel needed for the cells when it last ran; 0 if that is unknown."""
        self.state = KernelState.ASLEEP
        self._is_retired = False
        self._tells_distrust = True
        """Whether to warn if the notebook is not trusted: only before the first time."""
        self._failure: tuple[StartFailure, Look | None, float] | None = None
        """Why the last start failed, how the file looked, and when that was."""

    # -- the file ----------------------------------------------------------------------------------

    def take_offer(self) -> None:
        """Read what the notebook last offered; in a worker thread, before it is served."""
        offer = find_last_offer(self._settings.home, self.path)
        if offer is not None:
            self._ran, self._tools = offer.code, tuple(offer.tools)

    def take_code(self, code: NotebookCode) -> ExpectedKernel | None:
        """Note the code that its file has now.

        Returns:
            What to list while it is asleep; None if it is not.
        """
        self._code = code
        return None if self.state is KernelState.AWAKE else self.expect()

    def retire(self) -> None:
        """Stop serving the notebook, whose file is gone; its running calls end first."""
        self._is_retired = True
        self._wanted.set()
        if self._start is not None and self.state is KernelState.STARTING:
            self._start.cancel()
        self._forget()

    @property
    def has_run(self) -> bool:
        """Whether it is known what the notebook offers, perhaps with other code."""
        return self._ran is not None

    def has_run_as(self, code: NotebookCode) -> bool:
        """Whether it is known what the notebook offers with this code."""
        return self._ran == code.digest

    @property
    def _is_stale(self) -> bool:
        """Whether its tools are those of other code than the file's."""
        return self._code is not None and self._code.digest != self._ran

    def expect(self) -> ExpectedKernel:
        """Return what is listed while the notebook is asleep."""
        tools = self._tools
        if self._is_stale:
            assert self._code is not None
            state = "Its code has changed since it last ran." if self.has_run else ""
            text = " ".join(filter(None, (self._code.summarize(), state)))
            tools = (*tools, _make_declaration(self.name, text, self._code.digest))
        return ExpectedKernel(self.id, self.name, tools, self._wake)

    # -- the kernel --------------------------------------------------------------------------------

    def _wake(self, agreed: str | None) -> None:
        """Start the kernel, unless that has just failed for a reason that has not changed."""
        if self._failure is not None:
            failure, look, at = self._failure
            if time.monotonic() - at < RETRY_AFTER and look_at(self.path) == look:
                self._links.note_failure(self.expect(), failure)
                return
        if agreed is None or not self._wanted.is_set():
            self._agreed = agreed
        self._wanted.set()

    async def run(self) -> None:
        """Serve the notebook until it is retired."""
        while not self._is_retired:
            await self._wanted.wait()
            if self._is_retired:
                break
            self.state = KernelState.STARTING
            look = look_at(self.path)
            try:
                with anyio.CancelScope() as self._start:
                    await self._serve()
                self.state = KernelState.ASLEEP
            except OffersNothing as error:
                drop_offer(self._settings.home, self.path)
                self._ran, self._tools = None, ()
                self._note_failure(str(error), look)
            except NoRoom as error:
                self._note_hindrance(
                    str(error), "there is no room for its kernel. Call again later."
                )
            except CodeChanged as error:
                self._note_hindrance(str(error), str(error))
            except (NotebookError, LinkError, OSError) as error:  # OSError: a full disk
                self._note_failure(str(error), look)
            except Exception as error:  # one notebook must not end all others
                logger.exception("%s could not be served", self.path)
                self._note_failure(f"{type(error).__name__}: {error}", look)
        self._forget()  # again: its kernel may have declared something since

    async def _serve(self) -> None:
        """Start the kernel if there is room, and serve it until it is not needed, or has died.

        Raises:
            NotebookError: The notebook cannot be run, or offers nothing.
            LinkError: Its kernel cannot be linked.
        """
        self._code = _read_code(self.path)
        self._makes_way = anyio.Event()
        memory = 0 if self._is_stale else self._memory
        async with self._room.take(self, memory):
            print_note(f"{self.name}: a call starts its kernel")
            await self._run_kernel()

    async def _run_kernel(self) -> None:
        run_notebook = await anyio.to_thread.run_sync(_import_run_notebook)
        version, digest = await anyio.to_thread.run_sync(_read_version, self.path)
        if self._code is None or self._code.digest != digest:  # it has just been saved
            self._code = await anyio.to_thread.run_sync(_read_code, self.path)
        if self._agreed not in {None, digest}:
            raise CodeChanged("its file was changed after a person was asked. Call again.")
        with ExitStack() as display:
            show = display.enter_context(self._progress.show())

            def progress(cells: CellProgress) -> None:
                show(cells)
                if cells.done < cells.total:
                    running = f"Cell {cells.done + 1} of {cells.total} is running."
                    self._links.note_status(self.id, running)

            async with run_notebook(
                self.path,
                self._settings,
                progress=progress,
                kernel_id=self.id,
                version=version,
                tells_distrust=self._tells_distrust,
            ) as notebook:
                display.close()
                self._tells_distrust = False

                async def describe_end() -> str:
                    self._sleep()  # at once: the next call must not find a link that is gone
                    return _LOST.format(name=self.name, end=await notebook.wait_for_end())

                record = structs.replace(notebook.record, name=self.name)
                async with self._links.open_link(record, describe_end) as link:
                    self.state, self._wanted = KernelState.AWAKE, anyio.Event()
                    self._failure = None
                    self._ran, self._tools, self._link = digest, link.initial_tools, link
                    self._memory = measure_kernel(record.pid)
                    link.note_use()  # it is to be kept for the call that has started it
                    end = await _wait_for_first(
                        lambda: _wait_for_link(link),
                        notebook.wait_for_end,
                        lambda: self._wait_for_rest(link),
                        self._wait_to_make_way,
                    )
                    self._sleep()
                    print_note(f"{self.name}: its kernel {end}")
                    # A child process of a dead kernel may hold the link open.
                    link.close(_LOST.format(name=self.name, end=end))

    def _sleep(self) -> None:
        """List what the notebook offered when its cells had run; the next call wakes it."""
        if self.state is KernelState.AWAKE:
            self.state = KernelState.ENDING
            if not self._is_retired:
                self._links.expect([self.expect()])

    async def _wait_for_rest(self, link: Link) -> str:
        """Wait until the kernel can be ended, and return why."""
        idle = max(self._settings.idle_minutes * 60, _LEAST_IDLE)
        while True:
            is_outdated = self._is_retired or self._is_stale
            limit = _LEAST_IDLE if is_outdated else max(idle, self._find_least_idle(link))
            rest = link.last_use + limit - time.monotonic()
            if rest <= 0 and not link.is_in_use:
                self._sleep()  # at once, as no call can have come since
                return self._explain_rest(limit)
            await anyio.sleep(min(max(rest, _LEAST_IDLE), 1.0))

    def _find_least_idle(self, link: Link) -> float:
        """Return for how many seconds the kernel has to be kept after its last use."""
        return self._settings.task_ttl if link.keeps_results else _LEAST_IDLE

    def _explain_rest(self, limit: float) -> str:
        if self._is_retired:
            return "was stopped, because its file is gone"
        if self._is_stale:
            return "was stopped, because its code has changed; the next call runs the new code"
        return f"was stopped, because it was not used for {format_seconds(limit)}"

    @property
    def idle_since(self) -> float | None:
        """When its kernel was last used; None if it must be kept, or is ending."""
        link = self._link
        if link is None or self.state is not KernelState.AWAKE or link.is_in_use:
            return None
        least = max(SPARED, self._find_least_idle(link))
        return link.last_use if time.monotonic() > link.last_use + least else None

    def measure(self) -> int:
        """Return the bytes that the end of its kernel would free."""
        return 0 if self._link is None else measure_kernel(self._link.record.pid)

    def make_way(self) -> None:
        """End the kernel, whose room another notebook needs."""
        self._sleep()  # at once, as above
        self._makes_way.set()

    async def _wait_to_make_way(self) -> str:
        await self._makes_way.wait()
        return "was stopped, because another notebook needed its room"

    def _note_hindrance(self, reason: str, short: str) -> None:
        """Tell the calls why the kernel was not started; the next one tries again."""
        refusal = f"The notebook {self.name!r} could not be run, so nothing was called"
        self._end_start(StartFailure(f"{refusal}: {reason}", f"{refusal}: {short}"))
        print_note(f"{self.name} could not be run: {reason}")

    def _note_failure(self, problem: str, look: Look | None) -> None:
        short = (
            f"The notebook {self.name!r}, which has this tool, could not be run. Its owner sees "
            "why where mcp-notebook was started."
        )
        failure = StartFailure(
            f"The notebook {self.name!r} could not be run, so nothing was called. It is tried "
            f"again when it has been saved, or after a minute.\n{problem}",
            short,
        )
        self._failure = failure, look, time.monotonic()
        self._end_start(failure)
        print_note(f"{self.name} could not be run. {problem}")

    def _end_start(self, failure: StartFailure) -> None:
        self.state, self._wanted = KernelState.ASLEEP, anyio.Event()
        if not self._is_retired:
            self._links.note_failure(self.expect(), failure)

    def _forget(self) -> None:
        self._links.forget(self.id, explain_deleted_notebook(self.name, time.time()))


def _import_run_notebook() -> "Callable[..., AbstractAsyncContextManager[RunningNotebook]]":
    """Import what runs notebooks: late, and in a thread, because it takes half a second."""
    from mcp_notebook.bridge.headless.notebook import run_notebook  # noqa: PLC0415

    return run_notebook


def _read_code(path: Path) -> NotebookCode:
    """Return the code of a file that is about to run.

    Raises:
        NotebookError: It cannot be read as a notebook.
    """
    try:
        return read_code(path)
    except NotebookError as error:
        raise NotebookError(f"{path}: {error}.") from None
    except OSError as error:
        raise NotebookError(f"{path} cannot be read: {error.strerror}.") from None


def _read_version(path: Path) -> "tuple[Version, str]":
    """Return a file's content, and the digest of its code; in a worker thread.

    Raises:
        NotebookError: It cannot be read as a notebook.
    """
    from mcp_notebook.bridge.headless.notebook_reader import (  # noqa: PLC0415 - imports nbformat
        describe_code,
        read_notebook,
    )

    version = read_notebook(path)
    return version, hash_code(describe_code(version[1]))


def _make_declaration(name: str, text: str, digest: str) -> messages.ToolInfo:
    """Return the entry of a notebook that has to run before its tools are known."""
    return messages.ToolInfo(
        name=name,
        description=text,
        input_schema={"type": "object"},
        meta={meta_keys.CODE: digest},
        kind="notebook",
    )


async def _wait_for_link(link: Link) -> str:
    await link.end.wait()
    return "closed the link"


async def _wait_for_first(*waits: Callable[[], Awaitable[str]]) -> str:
    """Wait until the first of several functions returns, and return its text."""
    texts: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def note(wait: Callable[[], Awaitable[str]]) -> None:
            texts.append(await wait())
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(note, wait)
    return texts[0]
