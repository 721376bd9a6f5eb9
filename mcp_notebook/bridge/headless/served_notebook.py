"""One notebook that is served: with a kernel that is always there, or one that starts on call.

Runs on the bridge's event loop, one task per notebook. Calls that come while there is no kernel
wait for the next one, and clients see what the notebook last offered, or what its source declares.

A notebook whose file is named has a kernel from the start (`room` is None):

1. If the first start fails, whoever starts the notebook gets the error: there are no clients yet.
2. A kernel that dies is restarted, after a delay that grows with each death: see `restarts`.
3. After several failed starts in a row (the kernel dies while its cells run, or a cell raises an
   exception) the notebook is given up.
4. A notebook that has changed and is no longer trusted has not failed: its calls get an error that
   says so, and it is restarted as soon as it is trusted.

A notebook of a folder has a kernel while it is used. Its states (`KernelState`):

1. Asleep: there is no kernel. A call wakes it.
2. Starting: the kernel runs the cells, and calls wait. If that fails, they get the reason, and the
   notebook is asleep again; until its file changes, or a minute has passed, later calls get the
   same reason at once. If there is no room for a kernel, or the file no longer has the code that a
   person agreed to, later calls try again. If the file is deleted, the start ends.
3. Awake: the kernel is linked, and its own list replaces the last one.
4. Ending: it has not been used for a while, another notebook needs its room, its code has changed,
   its file is gone, or its process has died. It is asleep again before the link is closed, so calls
   wake it as soon as it has ended.

Nothing is restarted there while no call needs it: a kernel that crashes costs its own calls, no
more. Where the kernel is always there, a link that fails while it is alive is opened again; a
kernel that does not accept it is ended. `saved_notebook` replaces a notebook when it is saved.
"""

import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio
import anyio.abc
import anyio.to_thread
from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.bridge.headless.cell_progress import CellProgress, SharedProgress
from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
from mcp_notebook.bridge.headless.kernel_room import SPARED, KernelRoom, KernelState
from mcp_notebook.bridge.headless.machine_limits import measure_kernel
from mcp_notebook.bridge.headless.notebook_code import (
    Look,
    NotebookCode,
    hash_code,
    look_at,
    read_code,
)
from mcp_notebook.bridge.headless.offers import drop_offer, find_last_offer, find_offer
from mcp_notebook.bridge.headless.restarts import Restarts
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import ExpectedKernel, Links, StartFailure
from mcp_notebook.bridge.kernels.locked_tools import keep_locked
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.errors import (
    CodeChanged,
    LinkError,
    NoRoom,
    NotebookError,
    OffersNothing,
    UntrustedNotebook,
)
from mcp_notebook.lock.lock_file import read_lock
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import MissingTool, explain_deleted_notebook
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
_RELINK_AFTER = 0.5
"""Seconds between the failure of a link and the next attempt."""
_LOST = (
    "The kernel of {name!r} {end}, and the call was lost. The next call waits until it has been "
    "started again."
)


class ServedNotebook:
    """Serves one notebook.

    Args:
        path: The notebook.
        settings: All options.
        links: List its tools, and open the links to its kernels.
        progress: Shows the progress of its cells.
        name: Its name for clients; empty: that of its file.
        room: Makes room for its kernel, which starts on call; None: it has one from the start.
        early: Its first kernel, if that was started early.
        restarts: Delays its restarts.
        retry_after: Seconds after which it is tried again if it failed and has not changed.
        spared: Seconds that its kernel is kept after its last use although it should make way.
    """

    def __init__(  # noqa: PLR0913 - one for each part that it uses
        self,
        path: Path,
        settings: Settings,
        links: Links,
        progress: SharedProgress,
        *,
        name: str = "",
        room: KernelRoom | None = None,
        early: EarlyKernel | None = None,
        restarts: Restarts | None = None,
        retry_after: float = RETRY_AFTER,
        spared: float = SPARED,
    ) -> None:
        self.path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - touches no disk
        self.name = name or path.stem
        self._settings = settings
        self._links = links
        self._progress = progress
        self._room = room
        self._early = early
        """The first kernel, until it is used."""
        self.id = make_id()
        """Its id in the catalogue."""
        self.version: Version | None = None
        """What all its kernels run; None: whatever the file has when they start."""
        self.before: ServedNotebook | None = None
        """The same notebook as it was before it was saved."""
        self._code: NotebookCode | None = None
        """What the file has."""
        self.ran: str | None = None
        """The digest of the code that made these tools; None if it has never run."""
        self._tools: tuple[messages.ToolInfo, ...] = ()
        """What it offered when it last ran."""
        self._wanted = anyio.Event()
        """Set when a call needs the kernel."""
        self._starter = ""
        """The guest whose call has started the kernel, or starts it; empty: the user's call."""
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
        self.restarts = restarts or Restarts()
        self._retry_after, self.spared = retry_after, spared
        self._retired = anyio.Event()
        """Set when no kernel is to be started any more."""
        self._linger = 0.0
        """Seconds that its kernel is kept after its last use then, at least."""
        self._warned_of: str | None = None
        """The digest of the code of which it was said that it is not trusted, if it is not."""
        self._failure: tuple[StartFailure, Look | None, float] | None = None
        """Why the last start failed, how the file looked, and when that was."""

    # -- the file ----------------------------------------------------------------------------------

    def take_offer(self) -> bool:
        """Read what the notebook last offered, before it is served; touches the disk.

        Returns:
            Whether there is anything to list. A notebook that is run at once counts only what its
            present code offered or declares.

        Raises:
            NotebookError: Only locked tools are offered, and it has no lock.
        """
        if self._settings.locked and self.path.exists():
            read_lock(self.path)
        find = find_offer if self._room is None else find_last_offer
        offer = find(self._settings.home, self.path)
        if offer is not None:
            self.ran, self._tools = offer.code or None, tuple(offer.tools)
        return offer is not None

    def take_code(self, code: NotebookCode) -> ExpectedKernel | None:
        """Note the code that its file has now.

        Returns:
            What to list while it is asleep; None if it is not.
        """
        self._code = code
        return None if self.state is KernelState.AWAKE else self.expect()

    def make_successor(self, version: "Version") -> Self:
        """Return the same notebook with a version that was saved; it retires this one."""
        new = type(self)(self.path, self._settings, self._links, self._progress, name=self.name)
        new.id, new.version, new.before = self.id, version, self
        return new

    def retire(self, linger: float = _LEAST_IDLE) -> None:
        """Start no kernel any more, because its file is gone or replaced; running calls end first.

        Args:
            linger: Seconds that the last kernel is kept after its last use.
        """
        self._linger = linger
        self._retired.set()
        self._wanted.set()
        if self._start is not None and self.state is KernelState.STARTING:
            self._start.cancel()
        if self.before is not None:
            self.before.retire()
            self.before = None
        if self._room is not None:
            self._forget()

    @property
    def is_retired(self) -> bool:
        """Whether no kernel is to be started any more."""
        return self._retired.is_set()

    @property
    def has_run(self) -> bool:
        """Whether it is known what the notebook offers, perhaps with other code."""
        return self.ran is not None

    def has_run_as(self, code: NotebookCode) -> bool:
        """Whether it is known what the notebook offers with this code."""
        return self.ran == code.digest

    @property
    def _is_stale(self) -> bool:
        """Whether its tools are those of other code than the file's."""
        return self._code is not None and self._code.digest != self.ran

    def expect(self) -> ExpectedKernel:
        """Return what is listed while there is no kernel."""
        offer = messages.Tools(tools=list(self._tools))
        if self._settings.locked and self.has_run:  # the source says too little to compare
            offer = keep_locked(offer, self.path)
        tools: Sequence[messages.ToolInfo] = offer.tools
        if self._is_stale and (code := self._code) is not None:
            place = "/".join(self.path.parts[-2:])
            about = [f"{code.title or place}.", "Its code has changed since it last ran."]
            if self._settings.confirm_destructive:  # a person is asked before the cells run
                about.insert(1, code.summarize())
            else:
                known = {(tool.kind, tool.name) for tool in tools}
                new = [tool for tool in code.tools if (tool.kind, tool.name) not in known]
                tools = (*tools, *(_quote(tool, place) for tool in new))
            text = " ".join(filter(None, about[: None if self.has_run else -1]))
            tools = (*tools, _make_declaration(self.name, text, code.digest))
        return ExpectedKernel(self.id, self.name, tools, self._note_call, offer.missing)

    # -- its kernels -------------------------------------------------------------------------------

    def _note_call(self, agreed: str | None, guest: str) -> None:
        """Start a kernel, unless that has just failed for a reason that has not changed."""
        if self._failure is not None:
            failure, look, at = self._failure
            if time.monotonic() - at < self._retry_after and look_at(self.path) == look:
                self._links.note_failure(self.expect(), failure)
                return
        if self._room is None:  # it is being started anyway
            return
        if agreed is None or not self._wanted.is_set():
            self._agreed = agreed
        if not guest or not self._wanted.is_set():
            self._starter = guest
        self._wanted.set()

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> str:
        """Serve the notebook from the start, until it is given up or retired.

        Returns:
            Why it is no longer served.

        Raises:
            NotebookError: The first start failed: it cannot be run, or offers no tool.
            LinkError: The first start failed: its kernel cannot be linked.
        """
        end = await self._run_kernel(task_status.started)
        while not self.is_retired:
            self.state, delay = KernelState.STARTING, self.restarts.take_delay()
            when = f"in {delay:g} s" if delay else "now"
            print_note(f"{self.path.name}: the kernel {end}. It is being restarted {when}.")
            try:
                with anyio.CancelScope() as self._start:
                    await anyio.sleep(delay)
                    end = await self.restarts.start_when_trusted(
                        self._run_kernel, self._tell_distrust
                    )
            except (NotebookError, LinkError, OSError) as error:  # OSError: a full disk
                if self.restarts.note_failure():
                    return self._give_up(str(error))
                print_note(str(error))
                end = "could not be started"
        return f"{self.path.name} has been saved, and its new version is served."

    def _tell_distrust(self, error: UntrustedNotebook) -> None:
        text = (
            f"The kernel of {self.name!r} ended and was not started again, because the notebook "
            "is no longer trusted; it may have changed. Its tools return when its user has read it "
            "and trusts it."
        )
        failure = StartFailure(text, text)
        self._failure = failure, look_at(self.path), math.inf
        self._links.note_failure(self.expect(), failure)
        print_note(f"{error} Then it is run.")

    def _give_up(self, problem: str) -> str:
        failures = self.restarts.failures
        reason = f"{self.path.name} is no longer served: {failures} starts in a row failed."
        step = "save it" if self._settings.watch else "start mcp-notebook again"
        why = MissingTool(self.name, None, reason, f"Fix the notebook and {step}.")
        self._links.forget(self.id, why)
        return f"{reason} The last failure: {problem}"

    async def run_on_call(self, room: KernelRoom) -> None:
        """Serve the notebook whenever a call needs it, until it is retired."""
        while not self.is_retired:
            await self._wanted.wait()
            if self.is_retired:
                break
            self.state = KernelState.STARTING
            look = look_at(self.path)
            try:
                with anyio.CancelScope() as self._start:
                    await self._run_in(room)
                self.state = KernelState.ASLEEP
            except OffersNothing as error:
                drop_offer(self._settings.home, self.path)
                self.ran, self._tools = None, ()
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

    async def _run_in(self, room: KernelRoom) -> None:
        """Start a kernel if there is room, and serve it until it is not needed, or has died.

        Raises:
            NotebookError: The notebook cannot be run, or offers nothing.
            LinkError: Its kernel cannot be linked.
        """
        self._code = _read_code(self.path)
        self._makes_way = anyio.Event()
        memory = 0 if self._is_stale else self._memory
        async with room.take(self, memory):
            print_note(f"{self.name}: a call starts its kernel")
            await self._run_kernel()

    async def _run_kernel(self, started: Callable[[], None] = lambda: None) -> str:
        """Start a kernel, and serve it until it ends or is not needed; return how it ended."""
        run_notebook = await anyio.to_thread.run_sync(_import_run_notebook)
        version, digest = await anyio.to_thread.run_sync(_read_version, self.path, self.version)
        if self._settings.watch and self._room is None:
            self.version = version
        if self._code is not None and self._code.digest != digest:  # it has just been saved
            self._code = await anyio.to_thread.run_sync(_read_code, self.path)
        if self._agreed not in {None, digest}:
            raise CodeChanged("its file was changed after a person was asked. Call again.")
        early, self._early = self._early, None
        with ExitStack() as display:
            show = display.enter_context(self._progress.show())

            def progress(cells: CellProgress) -> None:
                self._failure = None  # it runs: its calls wait
                show(cells)
                if cells.done < cells.total:
                    running = f"Cell {cells.done + 1} of {cells.total} is running."
                    self._links.note_status(self.id, running)

            async with run_notebook(
                self.path,
                self._settings,
                progress=progress,
                early=early,
                version=version,
                warns=self._warned_of != digest,
            ) as notebook:
                display.close()
                self._warned_of = digest
                return await self._keep_linked(notebook, digest, started)

    async def _keep_linked(
        self, notebook: "RunningNotebook", digest: str, started: Callable[[], None]
    ) -> str:
        """Keep a kernel linked until it ends or is not needed, and return how it ended."""
        began = time.monotonic()
        end = await self._serve_link(notebook, digest, started)
        while end is None and self._room is None and not self.is_retired:
            with anyio.move_on_after(_RELINK_AFTER):
                end = await notebook.wait_for_end()
                break
            if self.is_retired:  # its successor has the calls now
                break
            try:
                end = await self._serve_link(notebook, digest, lambda: None)
            except LinkError:
                end = "does not answer"
        self.restarts.note_death(time.monotonic() - began)
        return end or "closed the link"

    async def _serve_link(
        self, notebook: "RunningNotebook", digest: str, started: Callable[[], None]
    ) -> str | None:
        """Link a kernel until it ends or is not needed; return how, None if only the link did."""

        async def describe_end() -> str:
            self._sleep()  # at once: the next call must not find a link that is gone
            return _LOST.format(name=self.name, end=await notebook.wait_for_end())

        record = structs.replace(notebook.record, name=self.name)
        async with self._links.open_link(record, describe_end, self.id) as link:
            if self.before is not None:
                self.before.retire(self.before.spared)
            self.state, self._wanted, self._failure = KernelState.AWAKE, anyio.Event(), None
            self.ran, self._tools, self._link = digest, link.initial_tools, link
            if self._room is not None:
                self._memory = measure_kernel(record.pid)
            # It is to be kept for the call that has started it.
            link.note_use(is_users=not self._starter)
            self.restarts.note_success()
            started()
            end = await _wait_for_first(
                link.end.wait,
                notebook.wait_for_end,
                partial(self._wait_for_rest, link),
                self._wait_to_make_way,
            )
            self._sleep()
            if end is not None:
                if self._room is not None:
                    print_note(f"{self.name}: its kernel {end}")
                # A child process of a dead kernel may hold the link open.
                link.close(_LOST.format(name=self.name, end=end))
        return end

    def _sleep(self) -> None:
        """List what the notebook offered when its cells had run; the next call waits for it."""
        if self.state is KernelState.AWAKE:
            self.state = KernelState.ENDING
            if not self.is_retired:
                self._links.expect([self.expect()])

    async def _wait_for_rest(self, link: Link) -> str:
        """Wait until the kernel can be ended, and return why."""
        if self._room is None:
            await self._retired.wait()
        idle = max(self._settings.idle_minutes * 60, _LEAST_IDLE)
        while True:
            limit = max(idle, self._find_least_idle(link))
            if self.is_retired or self._is_stale:
                limit = max(self._linger, _LEAST_IDLE)
            rest = link.last_use + limit - time.monotonic()
            if rest <= 0 and not link.is_in_use:
                self._sleep()  # at once, as no call can have come since
                return self._explain_rest(limit)
            await anyio.sleep(min(max(rest, _LEAST_IDLE), 1.0))

    def _find_least_idle(self, link: Link) -> float:
        """Return for how many seconds the kernel has to be kept after its last use."""
        return self._settings.task_ttl if link.keeps_results else _LEAST_IDLE

    def _explain_rest(self, limit: float) -> str:
        if self.is_retired:
            return "was stopped, because its file is gone or was saved"
        if self._is_stale:
            return "was stopped, because its code has changed; the next call runs the new code"
        return f"was stopped, because it was not used for {format_seconds(limit)}"

    @property
    def guest(self) -> str:
        """The guest whose kernel it is; empty if the user has started or used it."""
        return self._starter if self.last_use_of_user is None else ""

    @property
    def last_use_of_user(self) -> float | None:
        """When the user last used the kernel; None if he has not."""
        if self._link is None or self.state is not KernelState.AWAKE:
            return None
        return self._link.last_use_of_user

    def find_idle_since(self, *, spared: bool) -> float | None:
        """Return when its kernel was last used; None if it must be kept, or is ending."""
        link = self._link
        if link is None or self.state is not KernelState.AWAKE or link.is_in_use:
            return None
        least = max(self.spared, self._find_least_idle(link)) if spared else _LEAST_IDLE
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
        if not self.is_retired:
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


def _read_version(path: Path, version: "Version | None" = None) -> "tuple[Version, str]":
    """Return a version, by default that of the file, and the digest of its code; in a thread.

    Raises:
        NotebookError: It cannot be read as a notebook.
    """
    from mcp_notebook.bridge.headless.notebook_reader import (  # noqa: PLC0415 - imports nbformat
        describe_code,
        read_notebook,
    )

    version = version or read_notebook(path)
    return version, hash_code(describe_code(version[1]))


def _quote(tool: messages.ToolInfo, place: str) -> messages.ToolInfo:
    """Return a tool from a source that nobody may have read yet, with its description as data.

    A call does more than the tool says: it runs all cells.
    """
    said = f" Its source says: {dumps(tool.description, ensure_ascii=False)}"
    text = f"The first call runs the notebook {place!r}.{said if tool.description else ''}"
    return structs.replace(tool, description=text, title=None, annotations=None)


def _make_declaration(name: str, text: str, digest: str) -> messages.ToolInfo:
    """Return the entry of a notebook that has to run before its tools are known."""
    return messages.ToolInfo(
        name=name,
        description=text,
        input_schema={"type": "object"},
        meta={meta_keys.CODE: digest},
        kind="notebook",
    )


async def _wait_for_first(*waits: Callable[[], Awaitable[str | None]]) -> str | None:
    """Wait until the first of several functions returns, and return what it does."""
    texts: list[str | None] = []
    async with anyio.create_task_group() as tasks:

        async def note(wait: Callable[[], Awaitable[str | None]]) -> None:
            texts.append(await wait())
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(note, wait)
    return texts[0]
