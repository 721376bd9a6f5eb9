"""Patches the process so that each call has its own outputs and figures.

Runs in the user's kernel, on the threads of the calls. The patches do nothing outside of calls, and
`CallEnvironment.close` undoes them. A call's outputs go to its `capture`. stdout and stderr are
routed from the first call until the extension is unloaded; displays, ``input`` and functions that
would end the kernel (``exit``, the loop's ``stop``) are patched while any call is active (counted).
Outside of calls, a patched function calls the original. `pyplot`, `progress_bars` and `descriptors`
have their own patches.

IPython sets ``sys.stdout.write`` at the start of each cell and restores the old one at its end, so
a patch made the same way in between would be lost. Each stream therefore gets its own class, whose
``write`` is a data descriptor that an attribute cannot override. A ``write`` that is set on the
stream still receives everything that no call takes.
"""

import asyncio
import builtins
import contextvars
import getpass
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any, Protocol

from IPython.core.interactiveshell import InteractiveShell
from msgspec import Struct

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.capture import CURRENT, Capture, current_capture
from mcp_notebook.kernel.calls.descriptors import Descriptors, OwnDescriptors
from mcp_notebook.kernel.calls.interrupts import guard_coroutine
from mcp_notebook.kernel.calls.progress_bars import ProgressBarPatcher, ProgressBars
from mcp_notebook.kernel.calls.pyplot import PyplotPatcher
from mcp_notebook.kernel.results.library_loaders import is_library_loader
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.context import LEVELS, LogMessage
from mcp_notebook.kernel.tools.reporting import LogLevel

_START = threading.Thread.start
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
        self._streams: list[Any] = []
        self._lock = threading.Lock()
        self._depth = 0
        self._calls: CurrentCall = CURRENT
        self._patches = FunctionPatches(self._calls)

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
            while self._streams:
                leave_stream(self._streams.pop())
        self._pyplot.uninstall()
        self._bars.uninstall()
        self._logging.uninstall()

    def acquire(self) -> None:
        """Install the patches for the first active call."""
        with self._lock:
            self._depth += 1
            for stream in (sys.stdout, sys.stderr):
                if stream not in self._streams and route_stream(stream, self._find_writer):
                    self._streams.append(stream)
                    self.descriptors.watch(stream)
            if self._depth == 1:
                self._patches.install(
                    (builtins, "input", _refuse_input),
                    (getpass, "getpass", _refuse_input),
                    # IPython shows the exception of a failing display method here.
                    (self.shell, "showtraceback", _show_nothing),
                    # Not ipykernel's hooks, which are thread-local: a tool may use another thread.
                    (self.shell.display_pub, "publish", _publish),
                    (self.shell.display_formatter, "format", self._format_display),
                    (self.shell.display_pub, "clear_output", _clear_output),
                    (self.shell, "ask_exit", _refuse_exit),
                    (self._loop, "stop", _refuse_exit),
                    (self._loop, "create_task", self._create_guarded_task),
                    (threading.Thread, "start", self._start_thread),
                )

    def release(self) -> None:
        """Remove the patches after the last active call."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._patches.remove()

    def start_over(self, capture: Capture) -> None:
        """In a copy of the kernel: forget other threads, and route everything to one call.

        Args:
            capture: The call's outputs.
        """
        self._lock, self._depth = threading.Lock(), 0
        self._calls = _OneCall(capture)
        self._patches = FunctionPatches(self._calls)

    @contextmanager
    def read_descriptors(self, capture: Capture) -> Iterator[None]:
        """In a copy of the kernel: route descriptors 1 and 2 to the call."""
        with OwnDescriptors(capture.write) as self.descriptors:
            yield

    def _find_writer(self) -> Callable[[str], None] | None:
        """Return the receiver of what the caller prints; None outside of calls."""
        capture = self._calls.get()
        return self.descriptors.find_writer() if capture is None else capture.write

    def _create_guarded_task(self, capture: Capture, task: Any, **options: Any) -> Any:
        return self._create_task(guard_coroutine(task, capture.steps), **options)

    def _start_thread(self, _capture: Capture, thread: threading.Thread) -> None:
        _start_in_context(thread, acquire=self.acquire, release=self.release)


class _Routing(AbstractContextManager[None]):
    """Routes the outputs of a call for a block."""

    def __init__(self, environment: CallEnvironment, capture: Capture) -> None:
        self._environment = environment
        self._capture = capture

    def __enter__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        self._environment.acquire()
        self._token = CURRENT.set(self._capture)

    def __exit__(self, *error: object) -> None:
        CURRENT.reset(self._token)
        # A stream that a tool left there would swallow the prints of the user's cells. Only on the
        # main thread: a cell that runs at the same time may have replaced them for a while.
        if threading.get_ident() == self._environment.main_thread:
            sys.stdout, sys.stderr = self._streams
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


class _OneCall:
    """The only call in a copy of the kernel: all code there belongs to it, even pool threads.

    Args:
        capture: The outputs of the call that the copy runs.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def get(self) -> Capture:
        """Return its capture."""
        return self._capture


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


def _show_nothing(_capture: Capture, *_args: Any, **_kwargs: Any) -> None:
    """Show nothing: `results.converter` reports the exception to the client."""


def _current_bars() -> ProgressBars | None:
    capture = current_capture()
    return None if capture is None else capture.bars


# -- functions ------------------------------------------------------------------------------------


class CurrentCall(Protocol):
    """Holds the current call, like a ContextVar."""

    def get(self) -> Any:
        """Return the object of the call that the caller runs in; None outside of calls."""


class _Patch(Struct, frozen=True, eq=False):
    """A function and its replacement."""

    owner: Any
    name: str
    is_own: bool
    """Whether it is an attribute of its owner itself, not of the owner's class."""
    original: Any
    """The attribute as stored; a method of a class is not bound."""
    function: Callable[..., Any]
    replacement: Callable[..., Any]


class FunctionPatches:
    """Replaces functions that calls must not reach, and restores them; used under a lock.

    A replacement is created once, not for each call.

    Args:
        current: Holds the first argument of the replacements; None outside of calls.
    """

    def __init__(self, current: CurrentCall) -> None:
        self._current = current
        self._patches: dict[str, _Patch] = {}
        """The latest patch of each name."""
        self._installed: list[_Patch] = []

    def install(self, *functions: tuple[Any, str, Callable[..., Any]]) -> None:
        """Replace functions.

        Args:
            functions: For each: its owner, its name, and the replacement in calls, whose first
                argument is the current call's object.
        """
        for owner, name, in_call in functions:
            patch = self._patches.get(name)
            try:
                members = vars(owner)
                is_own = name in members
                original = members[name] if is_own else getattr(type(owner), name, None)
                is_made = (
                    patch is not None
                    and patch.owner is owner
                    and patch.is_own is is_own
                    and patch.original is original
                )
                if patch is None or not is_made:
                    patch = self._make(owner, name, in_call, is_own=is_own, original=original)
            except (TypeError, AttributeError):
                continue  # the user has replaced it by something that cannot be patched
            setattr(owner, name, patch.replacement)
            self._installed.append(patch)

    def remove(self) -> None:
        """Restore the originals."""
        while self._installed:
            patch = self._installed.pop()
            # A later patch (by a running cell, or by the user) stays: ours only calls the original
            # once no call is active.
            if vars(patch.owner).get(patch.name) is not patch.replacement:
                continue
            if patch.is_own:
                setattr(patch.owner, patch.name, patch.function)
            else:
                delattr(patch.owner, patch.name)

    def _make(
        self, owner: Any, name: str, in_call: Callable[..., Any], *, is_own: bool, original: Any
    ) -> _Patch:
        function, current = getattr(owner, name), self._current

        def replacement(*args: Any, **kwargs: Any) -> Any:
            call = current.get()
            return function(*args, **kwargs) if call is None else in_call(call, *args, **kwargs)

        patch = _Patch(owner, name, is_own, original, function, replacement)
        if original is not None:  # otherwise `__getattr__` may return another one next time
            self._patches[name] = patch
        return patch


# -- output streams -------------------------------------------------------------------------------


_OWN_WRITE = "_mcp_notebook_write"
"""Attribute of a routed stream: the ``write`` that was set on it."""


def route_stream(stream: Any, taker: Callable[[], Callable[[str], object] | None]) -> bool:
    """Route a stream: before it writes a text, it asks for the caller's receiver.

    Args:
        stream: Any stream written in Python; others are left alone.
        taker: Returns the receiver of what the caller prints; None: the stream itself.

    Returns:
        Whether the stream was changed; False if it is routed already.
    """
    if stream is None or _is_routed(stream):
        return False
    original = type(stream)
    members = {"write": _Write(original, taker), "__module__": original.__module__}
    try:
        stream.__class__ = type(original.__name__, (original,), members)
    except TypeError:
        return False
    if "write" in vars(stream):
        stream.write = vars(stream).pop("write")
    return True


def leave_stream(stream: Any) -> None:
    """Undo `route_stream`."""
    if _is_routed(stream):
        own_write = vars(stream).pop(_OWN_WRITE, None)
        stream.__class__ = type(stream).__mro__[1]
        if own_write is not None:
            stream.write = own_write


def _is_routed(stream: Any) -> bool:
    return isinstance(vars(type(stream)).get("write"), _Write)


class _Write:
    """``write`` of a routed stream's class."""

    def __init__(self, original: type, taker: Callable[[], Callable[[str], object] | None]) -> None:
        self._original = original
        self._taker = taker

    def __get__(self, stream: Any, owner: type) -> Any:
        if stream is None:
            return self
        method = self._original.write.__get__(stream)  # type: ignore[attr-defined]
        return _BoundWrite(vars(stream).get(_OWN_WRITE), method, self._taker)

    def __set__(self, stream: Any, value: Any) -> None:
        # IPython reads `write` at the start of a cell and sets that value at the cell's end: the
        # bound object holds the attribute that was set when it was read.
        vars(stream)[_OWN_WRITE] = value.own_write if isinstance(value, _BoundWrite) else value

    def __delete__(self, stream: Any) -> None:
        vars(stream).pop(_OWN_WRITE, None)


class _BoundWrite:
    """The value of ``stream.write`` when it is read."""

    __slots__ = ("_taker", "_write", "own_write")

    def __init__(
        self, own_write: Any, method: Any, taker: Callable[[], Callable[[str], object] | None]
    ) -> None:
        self.own_write = own_write
        self._write = method if own_write is None else own_write
        self._taker = taker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._write, name)  # a method's name, module, docstring...

    def __call__(self, text: str, *args: Any, **kwargs: Any) -> Any:
        take = self._taker()
        if take is None:
            return self._write(text, *args, **kwargs)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        take(text)
        return len(text)


# -- threads that calls start ----------------------------------------------------------------------


def _start_in_context(
    thread: threading.Thread, *, acquire: Callable[[], None], release: Callable[[], None]
) -> None:
    """Start a thread; in the caller's context if it runs a function of the notebook.

    Python's threads do not inherit the caller's context, so their printed text and tracebacks would
    appear below the user's last cell. The threads of libraries (the workers of a pool, a monitor of
    progress bars) are left alone: they outlive the call and also serve the user's cells.

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
            if taker is None or not taker.wants_logs:
                original(logger, record)
                return
            before = taker.printed_chars
            original(logger, record)
            taker.log(_read_record(record), is_printed=taker.printed_chars != before)

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
