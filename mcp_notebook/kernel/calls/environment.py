"""What is changed in the process so that each call has its outputs and figures to itself.

Runs in the user's kernel, on the threads of the calls. What is changed for a call lets everything
outside of calls pass; `CallEnvironment.close` puts all of it back. What a call prints and shows
goes to its `capture`. stdout and stderr are routed from the first call until the extension is
unloaded; displays, ``input`` and what would end the kernel (``exit``, the loop's ``stop``) for as
long as any call is active (counted). `pyplot`, `progress_bars` and `descriptors` have patches of
their own.
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
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.capture import CURRENT, Capture, current_capture
from mcp_notebook.kernel.calls.descriptors import Descriptors, OwnDescriptors
from mcp_notebook.kernel.calls.interrupts import guard_coroutine
from mcp_notebook.kernel.calls.patches import (
    CurrentCall,
    FunctionPatches,
    leave_stream,
    route_stream,
)
from mcp_notebook.kernel.calls.progress_bars import ProgressBarPatcher, ProgressBars
from mcp_notebook.kernel.calls.pyplot import PyplotPatcher
from mcp_notebook.kernel.results.library_loaders import is_library_loader
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.context import LEVELS, LogMessage
from mcp_notebook.kernel.tools.reporting import LogLevel

_START = threading.Thread.start
_NOTEBOOK = "__main__"
_FORMATTER = logging.Formatter("%(message)s")  # with the traceback, where there is one


class CallEnvironment:
    """Surrounds the code of calls, and lets all else pass.

    Args:
        shell: The notebook's IPython.
        loop: The main thread's event loop.
        format_display: Does for a call, given its capture, what ``shell.display_formatter.format``
            does for cells.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        loop: asyncio.AbstractEventLoop,
        format_display: Callable[..., tuple[dict[str, Any], dict[str, Any]]],
    ) -> None:
        self._shell = shell
        self._loop = loop
        self._format_display = format_display
        self._create_task = loop.create_task
        self._pyplot = PyplotPatcher()
        self._bars = ProgressBarPatcher(_current_bars)
        self._logging = _LoggingPatcher()
        self.main_thread = threading.main_thread().ident
        """The one that cells run on."""
        self.descriptors: Descriptors = Descriptors()
        """Sends to the call on the main thread what the programs that it starts print."""
        self._streams: list[Any] = []
        self._lock = threading.Lock()
        self._depth = 0
        self._calls: CurrentCall = CURRENT
        self._patches = FunctionPatches(self._calls)

    def surround(self, capture: Capture) -> AbstractContextManager[None]:
        """Run the code of a call in a block, apart from cells and from other calls.

        Args:
            capture: Takes what the code prints, displays and logs.
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
        """Put everything back as it was before the first call; on the main thread."""
        with self._lock:
            while self._streams:
                leave_stream(self._streams.pop())
        self._pyplot.uninstall()
        self._bars.uninstall()
        self._logging.uninstall()

    def acquire(self) -> None:
        """Start routing if nobody does."""
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
                    # IPython shows here what an object's failing display method raised.
                    (self._shell, "showtraceback", _show_nothing),
                    # Not ipykernel's hooks: they are of one thread, and a tool may use another one.
                    (self._shell.display_pub, "publish", _publish),
                    (self._shell.display_formatter, "format", self._format_display),
                    (self._shell.display_pub, "clear_output", _clear_output),
                    (self._shell, "ask_exit", _refuse_exit),
                    (self._loop, "stop", _refuse_exit),
                    (self._loop, "create_task", self._create_guarded_task),
                    (threading.Thread, "start", self._start_thread),
                )

    def release(self) -> None:
        """Stop routing when the last one stops."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._patches.remove()

    def start_over(self, capture: Capture) -> None:
        """In a copy of the kernel: whatever other threads were at when it began, all is one call's.

        Args:
            capture: The call's.
        """
        self._lock, self._depth = threading.Lock(), 0
        self._calls = _OneCall(capture)
        self._patches = FunctionPatches(self._calls)

    @contextmanager
    def read_descriptors(self, capture: Capture) -> Iterator[None]:
        """In a copy of the kernel: what is written to descriptors 1 and 2 is the call's alone."""
        with OwnDescriptors(capture.write) as self.descriptors:
            yield

    def _find_writer(self) -> Callable[[str], None] | None:
        """Return what takes the prints of the caller's call."""
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
        # What a tool left in their place would swallow the prints of the user's cells. Beside
        # a thread a cell may run, and have put something there for a while.
        if threading.get_ident() == self._environment.main_thread:
            sys.stdout, sys.stderr = self._streams
        self._environment.release()


class _Surroundings(_Routing):
    """What surrounds the code of a call."""

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
    """The only call of a copy of the kernel: all code there belongs to it, even threads of pools.

    Args:
        capture: Of the call that the copy runs.
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
        "The tool asked for input, but nobody is there to answer: a tool is called by an "
        "assistant, not in a cell. Make what it asks for a parameter of the tool."
    )


def _show_nothing(_capture: Capture, *_args: Any, **_kwargs: Any) -> None:
    """Keep out of the user's cells what `results.converter` tells the client in its own way."""


def _current_bars() -> ProgressBars | None:
    capture = current_capture()
    return None if capture is None else capture.bars


# -- threads that calls start ----------------------------------------------------------------------


def _start_in_context(
    thread: threading.Thread, *, acquire: Callable[[], None], release: Callable[[], None]
) -> None:
    """Start a thread, in the context of the caller if it runs a function of the notebook.

    Python's threads begin without the context of whoever starts them, so that what they print, and
    the traceback of one that fails, would appear below the user's last cell. The threads of
    libraries (the workers of a pool, a monitor of progress bars) are left alone: they outlive the
    call and serve the user's cells as well.

    Args:
        thread: To be started.
        acquire: Keeps what the thread displays away from the user's cells, also after the call.
        release: Undoes that, when the thread ends.
    """
    if thread.ident is not None or not _runs_notebook_code(thread):
        _START(thread)  # which refuses to start a thread twice
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
        except RuntimeError:  # the system gives no more threads
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
    """Lets calls hear what is logged in them, from `install` to `uninstall`.

    It looks on while loggers hand records to their handlers, and leaves those alone: a handler of
    our own on the root logger would keep ``logging.basicConfig`` and the last resort from working
    in the user's cells. Whether a record is logged at all is the user's configuration; who gets it
    is the capture's decision.
    """

    def __init__(self) -> None:
        self._original: Callable[[logging.Logger, logging.LogRecord], None] | None = None

    def install(self) -> None:
        """Start to look on; idempotent."""
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
        """Restore the original, unless somebody else has wrapped ours."""
        if self._original is not None and logging.Logger.callHandlers is self._ours:
            logging.Logger.callHandlers = self._original  # type: ignore[method-assign, assignment]
        self._original = None


def level_of(number: int) -> LogLevel:
    """Return MCP's level for one of Python's."""
    closest: LogLevel = "debug"
    for level, least in LEVELS.items():
        if number >= least:
            closest = level
    return closest


def _read_record(record: logging.LogRecord) -> LogMessage:
    try:
        text = _FORMATTER.format(record)
    except Exception:  # noqa: BLE001 - arguments that do not fit the format; logging tells of it
        text = str(record.msg)
    return LogMessage(level_of(record.levelno), text, record.name)
