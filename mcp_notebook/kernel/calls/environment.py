"""Patches the process so that each call has its own outputs and figures.

Runs in the user's kernel, on the threads of the calls. The patches do nothing outside of calls, and
`CallEnvironment.close` undoes them. A call's outputs go to its `capture`. stdout and stderr are
routed (`streams`) until the extension is unloaded; displays and functions that would end the kernel
(``exit``, the loop's ``stop``) are patched while any call is active (counted), and afterwards until
the next cell: to patch them for each call would take a tenth of it. ``input`` and ``getpass`` are
patched only while a call is active: ipykernel saves them before a cell, and restores what it saved.
Outside of calls, a patched function calls the original. `pyplot`, `progress_bars` and `descriptors`
have their own patches.
"""

import asyncio
import builtins
import contextvars
import getpass
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any

from IPython.core.display_trap import DisplayTrap
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from msgspec import Struct

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls import shell_commands
from mcp_notebook.kernel.calls.capture import CURRENT, Capture, current_capture
from mcp_notebook.kernel.calls.descriptors import Descriptors, OwnDescriptors
from mcp_notebook.kernel.calls.interrupts import guard_coroutine
from mcp_notebook.kernel.calls.progress_bars import ProgressBarPatcher, ProgressBars
from mcp_notebook.kernel.calls.pyplot import PyplotPatcher
from mcp_notebook.kernel.calls.streams import Streams
from mcp_notebook.kernel.results.library_loaders import is_library_loader
from mcp_notebook.kernel.results.tracebacks import describe_exception
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.context import LEVELS, LogMessage
from mcp_notebook.kernel.tools.reporting import LogLevel

_MAIN_IS_FREE = 0.1
"""Seconds in which a free main thread begins to run a function."""
_START = threading.Thread.start
_SUBMIT = ThreadPoolExecutor.submit
_NOTEBOOK = "__main__"
_FORMATTER = logging.Formatter("%(message)s")  # adds the traceback, if there is one


class CallEnvironment:
    """Isolates the outputs of calls, and leaves all other code alone.

    Args:
        shell: The notebook's IPython.
        loop: The main thread's event loop.
        format_display: Replaces ``shell.display_formatter.format`` in calls; its first argument is
            the call's capture.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        loop: asyncio.AbstractEventLoop,
        format_display: Callable[..., tuple[dict[str, Any], dict[str, Any]]],
    ) -> None:
        self.shell = shell
        """The notebook's IPython."""
        self._loop = loop
        self._format_display = format_display
        self._create_task = loop.create_task
        self._pyplot = PyplotPatcher()
        self._bars = ProgressBarPatcher(_current_bars)
        self._logging = _LoggingPatcher()
        self.main_thread = threading.main_thread().ident
        """The thread that cells run on."""
        self.descriptors: Descriptors = Descriptors()
        """Routes the output of child processes to the call on the main thread."""
        self._lock = threading.Lock()
        self._depth = 0
        self._is_between_cells = False
        """Whether patches may stay after the last active call."""
        self._find_current: Callable[[], Capture | None] = CURRENT.get
        self._patches = FunctionPatches(CURRENT.get)
        self._input_patches = FunctionPatches(CURRENT.get)
        self._display_pub: Any = shell.display_pub
        self._streams = Streams(self._find_call, self._find_writer, shell.displayhook)

    def surround(self, capture: Capture) -> AbstractContextManager[None]:
        """Isolate the code of a call within a block.

        Args:
            capture: Receives its outputs.
        """
        return _Surroundings(self, capture)

    def route_outputs(self, capture: Capture) -> AbstractContextManager[None]:
        """Route the outputs of a call within a block; blocks may overlap, on any threads."""
        return _Routing(self, capture)

    def install(self, capture: Capture) -> None:
        """Install the patches that outlast a call, if they are not installed yet."""
        self._pyplot.begin()
        self._bars.install()
        if capture.wants_logs:
            self._logging.install()

    def close(self) -> None:
        """Undo all patches; on the main thread."""
        with self._lock:
            self._streams.close()
        self.begin_cell()
        self._pyplot.uninstall()
        self._bars.uninstall()
        self._logging.uninstall()

    def acquire(self) -> None:
        """Install the patches for the first active call."""
        with self._lock:
            self._depth += 1
            for stream in self._streams.route():
                self.descriptors.watch(stream)
            if self._depth > 1:
                return
            self._input_patches.install(
                (builtins, "input", _refuse_input), (getpass, "getpass", _refuse_input)
            )
            if not self._patches.are_in_place:
                self._patches.remove()
                self._patches.install(
                    (self.shell, "showtraceback", self._show_error),
                    (self.shell, "showsyntaxerror", self._show_syntax_error),
                    # Not ipykernel's hooks, which are thread-local: a tool may use another thread.
                    (self._display_pub, "publish", _publish),
                    (self.shell.display_formatter, "format", self._format_display),
                    (self._display_pub, "clear_output", _clear_output),
                    *((module, "system", _run_command) for module in shell_commands.MODULES),
                    (self.shell.payload_manager, "write_payload", _take_payload),
                    # The values of `run_cell`, and of code compiled in the mode "single".
                    (self.shell.displayhook, "compute_format_data", _show_value),
                    (self.shell.displayhook, "update_user_ns", _do_nothing),
                    # They set the `displayhook` of cells.
                    (DisplayTrap, "__enter__", _do_nothing),
                    (DisplayTrap, "__exit__", _do_nothing),
                    (self.shell, "ask_exit", _refuse_exit),
                    (self._loop, "stop", _refuse_exit),
                    (self._loop, "create_task", self._create_guarded_task),
                    (threading.Thread, "start", self._start_thread),
                    (ThreadPoolExecutor, "submit", _submit_in_context),
                )

    def release(self) -> None:
        """End an active call; while a cell runs, the last one removes all patches."""
        with self._lock:
            self._depth -= 1
            if self._depth:
                return
            self._input_patches.remove()
            if not self._is_between_cells:
                self._patches.remove()

    def begin_cell(self) -> None:
        """Remove the patches, now or after the last active call: the user's code has none."""
        with self._lock:
            self._is_between_cells = False
            if self._depth == 0:
                self._patches.remove()

    def end_cell(self) -> None:
        """Let patches stay until the next cell."""
        self._is_between_cells = True

    def start_over(self, capture: Capture) -> None:
        """In a copy of the kernel: forget other threads, and route everything to one call.

        Args:
            capture: The call's outputs.
        """
        self._lock, self._depth = threading.Lock(), 0
        # All code here belongs to the call, even the threads of pools.
        self._find_current = lambda: capture
        self._patches = FunctionPatches(self._find_current)
        self._input_patches = FunctionPatches(self._find_current)

    def run_on_main(self, function: Callable[[], None]) -> None:
        """Run a function on the main thread, if that is free; what it prints is the call's.

        In a copy of the kernel, the only thread is the main thread.
        """
        if threading.current_thread() is threading.main_thread():
            function()
            return
        future: Future[None] = Future()
        context = contextvars.copy_context()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                context.run(function)
            except BaseException as error:  # noqa: BLE001 - in a callback of the kernel's loop
                future.set_exception(error)
            else:
                future.set_result(None)

        self._loop.call_soon_threadsafe(run)
        try:
            future.result(_MAIN_IS_FREE)
        except TimeoutError:
            if not future.cancel():
                future.result()

    @contextmanager
    def read_descriptors(self, capture: Capture) -> Iterator[None]:
        """In a copy of the kernel: route descriptors 1 and 2 to the call."""
        with OwnDescriptors(capture.write) as self.descriptors:
            yield

    def _find_call(self) -> Capture | None:
        return self._find_current()

    def _find_writer(self) -> Callable[[str], None] | None:
        """Return the receiver of what the caller prints; None outside of calls."""
        capture = self._find_call()
        return self.descriptors.find_writer() if capture is None else capture.write

    def _create_guarded_task(self, capture: Capture, task: Any, **options: Any) -> Any:
        return self._create_task(guard_coroutine(task, capture.steps), **options)

    def _show_error(
        self, capture: Capture, exception: Any = None, *_args: Any, **_options: Any
    ) -> None:
        # That of a failing display method is given; `results.converter` reports it to the client.
        if exception is None:
            self._show_syntax_error(capture)

    def _show_syntax_error(self, capture: Capture, *_args: Any, **_options: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            text = describe_exception(error, self.shell.compile.format_code_name)
            capture.write(f"{text}\n")

    def _start_thread(self, _capture: Capture, thread: threading.Thread) -> None:
        _start_in_context(thread, acquire=self.acquire, release=self.release)


class _Routing(AbstractContextManager[None]):
    """Routes the outputs of a call for a block."""

    def __init__(self, environment: CallEnvironment, capture: Capture) -> None:
        self._environment = environment
        self._capture = capture

    def __enter__(self) -> None:
        self._environment.acquire()
        self._token = CURRENT.set(self._capture)

    def __exit__(self, *error: object) -> None:
        CURRENT.reset(self._token)
        self._environment.release()


class _Surroundings(_Routing):
    """Isolates the code of a call within a block."""

    def __enter__(self) -> None:
        self._environment.install(self._capture)
        self._descriptors = self._environment.descriptors
        super().__enter__()
        try:
            self._claim = self._descriptors.claim(self._capture.write)
        except BaseException:
            super().__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self._descriptors.release(self._claim)
        finally:
            super().__exit__()


def _publish(
    capture: Capture,
    data: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    *,
    transient: dict[str, Any] | None = None,
    **_kwargs: Any,
) -> None:
    if not is_library_loader(data):
        capture.show(data, metadata or {}, (transient or {}).get("display_id"))


def _run_command(_capture: Capture, command: str) -> int:
    return shell_commands.run_without_input(command)


def _take_payload(capture: Capture, payload: dict[str, Any], **_kwargs: Any) -> None:
    """Show what a pager or the next input would: payloads leave with the user's next cell."""
    data = payload.get("data") if payload.get("source") == "page" else None
    text = data.get("text/plain") if isinstance(data, dict) else payload.get("text")
    if isinstance(text, str):
        capture.write(text if text.endswith("\n") else f"{text}\n")
    elif isinstance(data, dict):
        capture.show(data, {}, None)


def _show_value(_capture: Capture, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    display(value)
    return {}, {}  # so that nothing is sent to the user's last cell


def _clear_output(capture: Capture, wait: bool = False) -> None:  # noqa: FBT001, FBT002 - IPython's
    capture.clear(wait=wait)


def _refuse_exit(_capture: Capture) -> None:
    raise ToolError(
        "The tool asked the kernel to end, but the notebook's user may still need it. "
        "`return` ends a tool."
    )


def _refuse_input(_capture: Capture, *_args: Any, **_kwargs: Any) -> None:
    # Outside a cell it would wait on the process's real stdin.
    raise ToolError(
        "The tool asked for input, but no person can answer: a tool is called by an "
        "assistant, not in a cell. Make what it asks for a parameter of the tool."
    )


def _do_nothing(_capture: Capture, *_args: Any, **_kwargs: Any) -> None:
    pass


def _current_bars() -> ProgressBars | None:
    capture = current_capture()
    return None if capture is None else capture.bars


# -- functions ------------------------------------------------------------------------------------


class _Patch(Struct, frozen=True, eq=False):
    """A function and its replacement."""

    owner: Any
    members: Mapping[str, Any]
    """The owner's own attributes."""
    name: str
    is_own: bool
    """Whether it is an attribute of its owner itself, not of the owner's class."""
    original: Any
    """The attribute as stored; a method of a class is not bound."""
    function: Callable[..., Any]
    replacement: Callable[..., Any]

    def fits(self, owner: Any, attribute: Any, *, is_own: bool) -> bool:
        """Return whether it is the patch for an attribute with this value."""
        if self.owner is not owner:
            return False
        # A cell that began while it was installed, and ended later, has restored ours.
        is_installed = attribute is self.replacement
        return is_installed or (self.is_own is is_own and self.original is attribute)


class FunctionPatches:
    """Replaces functions that calls must not reach, and restores them; used under a lock.

    A replacement is created once, not for each call.

    Args:
        find_current: Returns the first argument of the replacements; None outside of calls.
    """

    def __init__(self, find_current: Callable[[], Any]) -> None:
        self._find_current = find_current
        self._patches: dict[tuple[str, Callable[..., Any]], _Patch] = {}
        """The latest patch by each replacement of a name."""
        self._installed: list[_Patch] = []

    def install(self, *functions: tuple[Any, str, Callable[..., Any]]) -> None:
        """Replace functions.

        Args:
            functions: For each: its owner, its name, and the replacement in calls, whose first
                argument is the current call's object.
        """
        for owner, name, in_call in functions:
            patch = self._patches.get((name, in_call))
            try:
                members = vars(owner)
                is_own = name in members
                original = members[name] if is_own else getattr(type(owner), name, None)
                if patch is None or not patch.fits(owner, original, is_own=is_own):
                    patch = self._make(owner, name, in_call, is_own=is_own, original=original)
            except (TypeError, AttributeError):
                continue  # the user has replaced it by something that cannot be patched
            setattr(owner, name, patch.replacement)
            self._installed.append(patch)

    @property
    def are_in_place(self) -> bool:
        """Whether they are installed, and nothing was put in the place of one."""
        return bool(self._installed) and all(
            patch.members.get(patch.name) is patch.replacement for patch in self._installed
        )

    def remove(self) -> None:
        """Restore the originals."""
        while self._installed:
            patch = self._installed.pop()
            # A later patch (by a running cell, or by the user) stays: ours only calls the original
            # once no call is active.
            if patch.members.get(patch.name) is not patch.replacement:
                continue
            if patch.is_own:
                setattr(patch.owner, patch.name, patch.function)
            else:
                delattr(patch.owner, patch.name)

    def _make(
        self, owner: Any, name: str, in_call: Callable[..., Any], *, is_own: bool, original: Any
    ) -> _Patch:
        function, find_current = getattr(owner, name), self._find_current

        def replacement(*args: Any, **kwargs: Any) -> Any:
            call = find_current()
            return function(*args, **kwargs) if call is None else in_call(call, *args, **kwargs)

        patch = _Patch(owner, vars(owner), name, is_own, original, function, replacement)
        if original is not None:  # otherwise `__getattr__` may return another one next time
            self._patches[name, in_call] = patch
        return patch


# -- threads that calls start ----------------------------------------------------------------------


def _start_in_context(
    thread: threading.Thread, *, acquire: Callable[[], None], release: Callable[[], None]
) -> None:
    """Start a thread; in the caller's context if it runs a function of the notebook.

    Python's threads do not inherit the caller's context, so their printed text and tracebacks would
    appear below the user's last cell. The threads of libraries (the workers of a pool, a monitor of
    progress bars) are left alone: they outlive the call and also serve the user's cells. A job that
    a call submits to a pool has its context by `_submit_in_context`.

    Args:
        thread: Not started yet.
        acquire: Keeps the thread's displays out of the user's cells, even after the call.
        release: Undoes that when the thread ends.
    """
    if thread.ident is not None or not _runs_notebook_code(thread):
        _START(thread)  # raises if the thread was started before
        return
    context = contextvars.copy_context()
    patched_run = vars(thread).get("run")  # by a debugger or profiler, say

    def restore_run() -> None:
        if patched_run is None:
            vars(thread).pop("run", None)  # no cycle is left
        else:
            thread.run = patched_run  # type: ignore[method-assign]

    def run() -> None:
        restore_run()
        try:
            context.run(thread.run)
        except BaseException as error:  # noqa: BLE001 - `Thread` does so, outside of the context
            trace = error.__traceback__ and error.__traceback__.tb_next  # without this frame
            error.__traceback__ = trace
            failure = threading.ExceptHookArgs((type(error), error, trace, thread))
            context.run(threading.excepthook, failure)
        finally:
            release()

    with Shield():
        acquire()
        thread.run = run  # type: ignore[method-assign]
        try:
            _START(thread)
        except RuntimeError:  # the system has no more threads
            restore_run()
            release()
            raise


def _submit_in_context(
    _capture: Capture, pool: ThreadPoolExecutor, function: Any, /, *args: Any, **kwargs: Any
) -> Future[Any]:
    return _SUBMIT(pool, contextvars.copy_context().run, function, *args, **kwargs)


def _runs_notebook_code(thread: threading.Thread) -> bool:
    function: Any = getattr(thread, "_target", None)
    if isinstance(thread, threading.Timer):
        function = thread.function
    while isinstance(function, partial):
        function = function.func
    owner = type(thread).run if function is None else function
    return getattr(owner, "__module__", None) == _NOTEBOOK


# -- what calls log --------------------------------------------------------------------------------


class _LoggingPatcher:
    """Passes log records to the calls that they are logged in, from `install` to `uninstall`.

    It patches the method that calls a logger's handlers. A handler on the root logger would keep
    ``logging.basicConfig`` and the last-resort handler from working in the user's cells. The user's
    configuration decides whether a record is logged; the capture decides who receives it.
    """

    def __init__(self) -> None:
        self._original: Callable[[logging.Logger, logging.LogRecord], None] | None = None

    def install(self) -> None:
        """Install the patch; idempotent."""
        if self._original is not None:
            return
        self._original = original = logging.Logger.callHandlers

        @wraps(original)
        def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
            taker = current_capture()
            is_ours = record.name.partition(".")[0] == "mcp_notebook"
            if taker is None or not taker.wants_logs or is_ours:
                original(logger, record)
                return
            original(logger, record)
            taker.log(_read_record(record))

        self._ours = handle
        logging.Logger.callHandlers = handle  # type: ignore[method-assign, assignment]

    def uninstall(self) -> None:
        """Restore the original, unless other code has wrapped ours."""
        if self._original is not None and logging.Logger.callHandlers is self._ours:
            logging.Logger.callHandlers = self._original  # type: ignore[method-assign, assignment]
        self._original = None


def level_of(number: int) -> LogLevel:
    """Return the MCP level for a number of Python's ``logging``."""
    closest: LogLevel = "debug"
    for level, least in LEVELS.items():
        if number >= least:
            closest = level
    return closest


def _read_record(record: logging.LogRecord) -> LogMessage:
    try:
        text = _FORMATTER.format(record)
    except Exception:  # noqa: BLE001 - arguments that do not fit the format; logging reports that
        text = str(record.msg)
    return LogMessage(level_of(record.levelno), text, record.name)
