"""Runs each call in a copy of the kernel, made by ``fork``.

Runs in the user's kernel, on a thread for each call, which forks the copy (`forked_child`) and
passes on its messages; and in the copy, on its only thread. There the call's code runs as on a
kernel's main thread, and its value is converted to a result, so that only content blocks are sent
and not the large objects behind them. The kernel sees none of the code's changes.
"""

import asyncio
import contextvars
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.content import ResourceLink, Result
from mcp_notebook.errors import CannotElicit, CopyEnded, ToolError
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.interrupts import InterruptGate
from mcp_notebook.kernel.calls.outcome import error_result
from mcp_notebook.kernel.calls.runners import ThreadRunner
from mcp_notebook.kernel.fork.changes import Snapshot
from mcp_notebook.kernel.fork.fork_safety import find_danger_in_copy, find_fork_danger
from mcp_notebook.kernel.fork.forked_child import ForkedChild
from mcp_notebook.kernel.results.blocks.originals import Original
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.tools.context import LogMessage, Update
from mcp_notebook.kernel.tools.open_questions import Elicitations

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

REPORT_INTERVAL = 0.05
"""Seconds between two reports of progress; those in between are dropped."""
_NOTICED_AFTER = 0.05
"""Seconds that Python has to run the handler of a signal; it takes microseconds."""
MAX_ORIGINAL = 50_000_000
"""Bytes of an original that the copy may send to the kernel, which keeps it for clients."""
_UNSAFE = (
    "The tool {!r} cannot run in a copy of the kernel (`--run fork`): {}. Declare it with "
    "`--run thread`, or without `--run`."
)
_NO_FORK = (
    "The tool {!r} cannot run now, because the kernel could not be copied: {}. Try again when "
    "fewer calls and programs are running."
)
_DISCONNECTED = "closed its connection to the kernel (`os.closerange`, perhaps), and was ended"
_STUCK = (
    "The copy of the kernel that ran {!r} deadlocked: it waited for a thread that only the kernel "
    "has. Either that thread held a lock, or the tool used a thread pool (pyarrow reads files with "
    "one, `preexec_fn` ends that of OpenBLAS). Read or compute the data in a cell, or declare the "
    "tool with `--run thread`."
)
_CANNOT_ASK = (
    "The tool {!r} cannot ask the user: it runs in a copy of the kernel (`--run fork`). Check "
    "`ctx.can_elicit` first, or declare the tool with `--run thread`."
)


class ForkRunner(ThreadRunner):
    """Runs each call in a copy of the kernel, even while a cell runs."""

    def _run_in_context(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        child = ForkedChild()
        if not self._execution.begin(call, child.interrupt):
            return
        try:
            result = self._run_in_child(call, child)
        except BaseException as error:  # noqa: BLE001 - the call has to be answered
            result = self._execution.convert_error(call, error, by_user=False)
        finally:
            child.close()
        on_result(result)

    # -- in the kernel -----------------------------------------------------------------------------

    def _run_in_child(self, call: ActiveCall, child: ForkedChild) -> Result:
        danger = find_fork_danger()
        if call.declared is not None and call.declared.options.executor is not None:
            danger = "its calls run on an executor"
        if danger is not None:
            raise ToolError(_UNSAFE.format(call.tool, danger))
        # In the kernel: what the copy builds is lost with it.
        self._execution.find_tool(call).prepare()
        limit = self._execution.stopper.find_limit(call)
        assert limit is not None
        try:
            child.start(partial(self._run_as_child, call), seconds=limit)
        except OSError as error:
            raise ToolError(_NO_FORK.format(call.tool, error)) from None
        call.has_run = True  # assumed: a copy that is killed does not tell
        for kind, *fields in child.receive():
            if kind == "result":
                result: Result = fields[0]
                is_private: bool = fields[1]
                call.has_run = fields[2]
                if child.interrupted and result.is_error:
                    raise KeyboardInterrupt  # the copy does not know the reason
                call.elicitations.is_used |= is_private
                return result
            if kind == "refusal":
                call.has_run = False
                raise ToolError(_UNSAFE.format(call.tool, *fields))
            self._take(call, child, kind, *fields)
        child.close()
        if child.interrupted:  # before the copy could handle the interrupt
            raise KeyboardInterrupt
        if child.is_stuck:
            raise ToolError(_STUCK.format(call.tool))
        end = _DISCONNECTED if child.is_disconnected else _describe_end(child.status)
        raise CopyEnded(call.tool, end)

    def _take(self, call: ActiveCall, child: ForkedChild, kind: str, value: Any) -> None:
        """Handle a message that precedes the result."""
        if kind == "log":
            call.capture.log(value)
        elif kind == "progress" and call.capture.report is not None:
            call.capture.report(value)
        elif kind == "original":
            keep = self._execution.converter.values.keep
            child.answer(() if call.client.is_trial else keep(value))

    # -- in the copy -------------------------------------------------------------------------------

    def _run_as_child(self, call: ActiveCall, connection: "Connection[Any, Any]") -> None:
        kernel = KernelOfChild(connection)
        danger = find_danger_in_copy()
        if danger is not None:
            kernel.refuse(danger)
            return
        environment, converter = self._execution.environment, self._execution.converter
        # Threads that the copy lacks may have held the lock, or one of the follower's.
        call.lock, call.follower = threading.Lock(), None
        environment.start_over(call.capture)
        call.capture.send_by(report=kernel.report, send_log=kernel.send_log)
        call.elicitations = Elicitations(
            refusal=lambda _message: CannotElicit(_CANNOT_ASK.format(call.tool))
        )
        kernel.sends_tables = call.client.shows_views
        converter.values.keep_by(kernel.keep)
        gate = InterruptGate()
        _watch_interrupts(gate)
        with environment.read_descriptors(call.capture):
            snapshot = self._take_snapshot(call)
            result = self._execution.run(call, gate, partial(self._await_in_child, gate))
        if snapshot is not None:
            result = self._add_changes(call, result, snapshot)
        kernel.send_result(result, is_private=call.elicitations.is_used, has_run=call.has_run)

    def _take_snapshot(self, call: ActiveCall) -> Snapshot | None:
        """Return the state of this copy if the call is a trial."""
        if not call.client.is_trial:
            return None
        shell = self._execution.environment.shell
        return Snapshot(shell.user_ns, shell.user_ns_hidden)

    def _add_changes(self, call: ActiveCall, result: Result, before: Snapshot) -> Result:
        """Return the result of a trial with what the call has changed."""
        later = self._take_snapshot(call)
        assert later is not None
        changes = [(change.kind, change.name) for change in before.compare(later)]
        return replace(result, meta={**result.meta, meta_keys.CHANGES: changes})

    def _await_in_child(
        self, gate: InterruptGate, call: ActiveCall, coroutine: Coroutine[Any, Any, Any]
    ) -> Result:
        async def wait() -> Any:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None

            def cancel(*_signal: Any) -> None:
                loop.call_soon_threadsafe(task.cancel)

            # The gate is closed: a KeyboardInterrupt would leave the loop.
            handler_of_gate = signal.signal(signal.SIGINT, cancel)
            watch = signal.set_wakeup_fd(-1)
            try:
                if gate.interrupted:
                    raise asyncio.CancelledError
                return await coroutine
            finally:
                signal.signal(signal.SIGINT, handler_of_gate)
                signal.set_wakeup_fd(watch, warn_on_full_buffer=False)

        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            value = runner.run(wait(), context=contextvars.copy_context())
        return self._execution.convert_in_gate(call, gate, value)


def _watch_interrupts(gate: InterruptGate) -> None:
    """In a copy of the kernel: raise interrupts that Python does not notice.

    In a copy forked off the main thread, Python 3.13 runs a signal's handler only if the signal
    ends a wait.
    """
    if sys.version_info < (3, 13):
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch() -> None:
        while os.read(reader, 1):
            sleep(_NOTICED_AFTER)
            gate.raise_unnoticed()

    threading.Thread(target=watch, name="mcp-notebook-interrupts", daemon=True).start()


class KernelOfChild:
    """The copy's connection to the kernel; any thread of the copy may use it.

    Args:
        connection: To the kernel.
    """

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._last_report = float("-inf")
        self.sends_tables = False
        """Whether the kernel gets the tables of originals, for their live views."""

    def report(self, update: Update) -> None:
        """Send progress, unless the last report was a moment ago and more is to come."""
        now = monotonic()
        is_last = update.done is not None and update.done == update.total
        if is_last or now - self._last_report >= REPORT_INTERVAL:
            self._last_report = now
            self._send("progress", update)

    def send_log(self, message: LogMessage) -> None:
        """Send a log message."""
        self._send("log", message)

    def keep(self, original: Original) -> tuple[ResourceLink, ...]:
        """Let the kernel keep the first format of an original, unless it is too large."""
        if original.cost > MAX_ORIGINAL or not original.formats:  # without: of the copy's own table
            return ()
        first = original.formats[0]
        data = first.content()
        if len(data) > MAX_ORIGINAL:
            return ()
        content = structs.replace(first, content=MadeContent(data), size=len(data))
        sent = structs.replace(original, formats=(content,), cost=len(data), read_table=None)
        table = self._pack_table(original)
        if table is not None:
            sent = structs.replace(
                sent, cost=len(data) + original.cost, read_table=PackedTable(table)
            )
        with self._lock:
            self._connection.send(("original", sent))
            links: tuple[ResourceLink, ...] = self._connection.recv()
        return links

    def _pack_table(self, original: Original) -> bytes | None:
        """Return a table to be read in the kernel; None if it has no view, or cannot be sent."""
        read_table = original.read_table
        if read_table is None or not self.sends_tables:
            return None
        return guard(lambda: pickle.dumps(read_table().snapshot()), recover=lambda _error: None)

    def refuse(self, danger: str) -> None:
        """Send the reason why this copy cannot run the function; the last message."""
        self._send("refusal", danger)

    def send_result(self, result: Result, *, is_private: bool, has_run: bool) -> None:
        """Send the result; the last message."""
        if os.getpid() != self._pid:
            return  # a child that the function forked has returned from it
        try:
            self._send("result", result, is_private, has_run)
        except OSError:
            raise  # the kernel has ended
        except Exception as error:  # noqa: BLE001 - an author's own `Result` may hold anything
            reason = describe_error(error).rstrip(".")
            text = f"The result cannot be sent from the copy of the kernel: {reason}."
            self._send("result", error_result(text), is_private, has_run)

    def _send(self, *message: Any) -> None:
        with self._lock:
            self._connection.send(message)


class MadeContent:
    """The content of an original that was created in the copy.

    Args:
        data: Text or bytes.
    """

    def __init__(self, data: str | bytes) -> None:
        self._data = data

    def __call__(self) -> str | bytes:
        """Return it."""
        return self._data


class PackedTable:
    """The frame of a table that was made in the copy, unpacked when its view is first opened.

    Args:
        data: The frame, pickled by the copy.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._frame: Any = None

    def __call__(self) -> Any:
        """Return it."""
        if self._frame is None:
            self._frame = pickle.loads(self._data)  # noqa: S301 - by the copy, our own process
            self._data = b""
        return self._frame


def _describe_end(status: int | None) -> str:
    """Describe how a copy without a result ended."""
    if status is None:
        return "ended before its function did"
    if status >= 0:
        return f"ended before its function did, with exit status {status} (`os._exit`, perhaps)"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    cause = {"SIGKILL": "out of memory, perhaps", "SIGSEGV": "a bug in C code"}.get(name)
    return f"was killed by {name}" + (f" ({cause})" if cause else "")
