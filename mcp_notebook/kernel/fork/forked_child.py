"""A forked copy of this process: its start, its messages, its end.

Runs in the user's kernel: the thread of a call starts a `ForkedChild` and waits for it; any other
thread may interrupt it. The copy has all data of the kernel, but only the thread that forked it.
It first calls `leave_kernel`, which detaches it from everything that it shares with the kernel
(sockets, streams, signals) and makes sure that it ends with the kernel. Then it runs a function,
and never returns.

Each call forks from a new thread: a cell may hold the main thread, and the endpoint's serves
bridges. In addition, GCC's OpenMP keeps a thread pool for each thread that uses it, so the copy of
a new thread starts its own pool and does not wait for threads that are gone.
"""

import contextlib
import ctypes
import gc
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_notebook.kernel.fork.endless_wait import waits_for_ever
from mcp_notebook.kernel.fork.raw_fork import (
    BlasThreads,
    fork_process,
    wait_for_malloc,
)

with suppress(ImportError):  # Windows, which loads this module too, but never forks
    import fcntl

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

GRACE = 0.5
"""Seconds between the interrupt, after which Python code cleans up, and SIGKILL."""
_LATE = 5.0
"""Seconds after its time limit at which the system ends a copy that the kernel has not ended."""
_LOOK = 0.1
"""Seconds between two checks of whether a silent copy is alive."""
_MOMENT = 0.001
"""Seconds between two checks of whether a copy that is about to end has ended."""
_FIRST_LOOK = 0.01
"""Seconds between two checks of whether a copy has started."""
_BEGIN_LIMIT = 10.0
"""Seconds that a copy has to start on systems that cannot tell whether it is deadlocked; it takes
milliseconds."""
_ATTEMPTS = 30
"""Forks until one copy starts. In the worst case seen, every third copy did not."""
_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36
"""``PR_SET_PDEATHSIG`` and ``PR_SET_CHILD_SUBREAPER`` of Linux's ``prctl``."""
_ROUNDS = 10
"""Rounds of killing a copy's descendants: killed processes may have started others."""
_FIRST_MESSAGE = b"begun"
"""The first message of a copy."""
_FAILED = 70
"""The exit status of a copy that could not do its work: ``EX_SOFTWARE``."""
_SELF_FD = Path("/proc/self/fd")
"""Where Linux reopens the file of a descriptor; macOS has no equivalent."""
_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_APPEND
"""The flags of an open file that are kept when it is reopened."""


class ForkedChild:
    """One copy of the kernel, as the kernel sees it."""

    def __init__(self) -> None:
        self.interrupted = False
        """Whether it has been interrupted."""
        self.status: int | None = None
        """Its exit code, as from ``os.waitstatus_to_exitcode``; None: unknown."""
        self.is_stuck = False
        """Whether it was killed because it had deadlocked."""
        self.is_disconnected = False
        """Whether it was killed because it had closed its connection without ending."""
        self._lock = threading.Lock()
        self._pid: int | None = None
        """None once the process has ended. Written by the call's thread, under the lock, so that no
        signal goes to a PID that has been reused."""
        self._kill_at: float | None = None
        self._connection: Connection[Any, Any] | None = None

    def start(
        self,
        run: Callable[["Connection[Any, Any]"], object],
        *,
        seconds: float,
    ) -> None:
        """Fork the copy.

        Args:
            run: Runs in the copy, with its end of the connection.
            seconds: The time limit; a little later, the system ends the copy.

        Raises:
            OSError: The system has no memory or process for it, or no copy starts.
        """
        for _ in range(_ATTEMPTS):
            self._fork(run, seconds)
            if self._begins():
                return
            self.close()
            self.is_stuck = False
        raise OSError("other threads of the notebook keep allocating memory")

    def _fork(
        self,
        run: Callable[["Connection[Any, Any]"], object],
        seconds: float,
    ) -> None:
        from multiprocessing.connection import Pipe  # noqa: PLC0415 - most notebooks do without

        ours, theirs = Pipe()
        kernel = os.getpid()
        # Until the copy resets them, it has the kernel's signal handlers, such as that of a cell.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = fork_process()
            if pid == 0:
                _live(run, theirs, seconds=seconds, mask=mask)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        finally:
            if os.getpid() != kernel:
                os._exit(_FAILED)  # whatever was raised: only the kernel continues from here
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._connection = ours
        with suppress(OSError):  # the copy has done so itself, or has ended
            os.setpgid(pid, pid)
        with self._lock:
            self._pid = pid
        if self.interrupted:
            self._end()

    def _begins(self) -> bool:
        """Wait until it starts or ends; return False if it is deadlocked."""
        assert self._connection is not None
        deadline = monotonic() + _BEGIN_LIMIT
        # First the message, then the check: while a cell computes, each system call waits for the
        # GIL.
        while not self._connection.poll(_FIRST_LOOK):
            if not self._lives():
                break
            if monotonic() >= deadline:
                return False
        with suppress(EOFError, OSError):  # it has ended
            if self._connection.poll(0):  # it may have started and ended between the two checks
                self._connection.recv_bytes()
        return not self.is_stuck

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in its code, and kill it soon after; from any thread.

        Returns:
            Whether it is alive.
        """
        with self._lock:
            if self._kill_at is None:
                self._kill_at = monotonic() + GRACE
            self.interrupted = True
            if self._pid is not None:
                os.kill(self._pid, signal.SIGINT)
            return self._pid is not None

    def receive(self) -> Iterator[Any]:
        """Yield its messages until it ends; each may be followed by `answer`."""
        assert self._connection is not None
        try:
            while True:
                if self._kill_at is not None and monotonic() >= self._kill_at:
                    self._end()
                if self._connection.poll(_LOOK):
                    yield self._connection.recv()
                elif not self._lives():
                    break
            while self._connection.poll(0):  # sent between the two checks
                yield self._connection.recv()
        except (EOFError, OSError):
            self._await_end()

    def answer(self, message: Any) -> None:
        """Send the answer that it waits for."""
        assert self._connection is not None
        with suppress(OSError):  # it has ended
            self._connection.send(message)

    def close(self) -> None:
        """Kill it and all its descendants, and reap it."""
        self._end()
        if self._connection is not None:
            self._connection.close()

    def _lives(self) -> bool:
        """Return whether it is alive; kill it if its time is up or it is deadlocked."""
        if self._kill_at is not None and monotonic() >= self._kill_at:
            self._end()
        pid = self._pid
        if pid is None:
            return False
        with self._lock:
            if self._reap(pid, os.WNOHANG):
                self._pid = None
        if self._pid is None:
            _kill_group(pid)  # its PID is not reused while a process is in its group
        elif waits_for_ever(pid):
            self.is_stuck = True
            self._end()
        return self._pid is not None

    def _await_end(self) -> None:
        """Wait for the end of a copy that has closed its connection, or kill it."""
        deadline = monotonic() + GRACE
        while self._lives():
            if monotonic() >= deadline:
                self.is_disconnected = True
                self._end()
            sleep(_MOMENT)

    def _end(self) -> None:
        """Kill it and its descendants, and wait for it."""
        with self._lock:  # released before the wait, so that `interrupt` never waits
            pid, self._pid = self._pid, None
        if pid is None:
            return
        # Until it is reaped, its PID cannot be reused.
        with suppress(OSError):
            os.kill(pid, signal.SIGSTOP)  # so that it starts no further processes
        _kill_descendants(pid)
        _kill_group(pid)
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        self._reap(pid, 0)

    def _reap(self, pid: int, options: int) -> bool:
        """Reap it; return whether it has ended."""
        try:
            ended, status = os.waitpid(pid, options)
        except ChildProcessError:  # other code reaps all children, or ignores SIGCHLD
            return True
        if ended:
            self.status = os.waitstatus_to_exitcode(status)
        return bool(ended)


def _kill_group(pid: int) -> None:
    """Kill the process group of a copy."""
    with suppress(OSError):  # it is empty
        os.killpg(pid, signal.SIGKILL)


def _kill_descendants(pid: int) -> None:
    """Kill the descendants of a copy, even those in another session.

    Linux lists them while the copy is alive, because it adopts orphans.
    """
    for _ in range(_ROUNDS):
        living = [child for child in _list_descendants(pid) if _is_running(child)]
        for child in living:
            with suppress(OSError):  # it has ended
                os.kill(child, signal.SIGKILL)
        if not living:
            return


def _list_descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):  # it has ended, or the system has no such folder
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                yield int(child)
                yield from _list_descendants(int(child))


def _is_running(pid: int) -> bool:
    """Return whether a process is alive; a zombie is not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return status.rpartition(b") ")[2][:1] not in b"ZX"


# -- in the copy -----------------------------------------------------------------------------------


def _live(
    run: Callable[["Connection[Any, Any]"], object],
    connection: "Connection[Any, Any]",
    *,
    seconds: float,
    mask: Iterable[int],
) -> NoReturn:
    """Run the copy to its end, without the kernel's exit handlers."""
    status = _FAILED
    try:
        leave_kernel(connection.fileno(), seconds=seconds, mask=mask)
        wait_for_malloc()
        BlasThreads().do_without()
        connection.send_bytes(_FIRST_MESSAGE)
        run(connection)
        status = 0
    finally:
        os._exit(status)  # also kills descendants, see `leave_kernel`


def leave_kernel(connection: int, *, seconds: float, mask: Iterable[int]) -> None:
    """Detach this copy from everything that it shares with the kernel.

    Args:
        connection: The descriptor of its connection to the kernel.
        seconds: Its time limit.
        mask: The kernel's signal mask; all signals are blocked now.
    """
    kernel = os.getppid()
    with suppress(OSError):
        os.setpgid(0, 0)  # interrupts of the user's cells are not for it
    _reset_signals(seconds)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    detach_descriptors(connection)
    with suppress(OSError, AttributeError):  # not on macOS
        control = ctypes.CDLL(None).prctl
        control(_DIE_WITH_PARENT, signal.SIGKILL)
        control(_ADOPT_ORPHANS, 1)
    with suppress(OSError):  # if memory runs out, the system kills the copy, not the kernel
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if os.getppid() != kernel:
        os._exit(0)
    # The handlers of C libraries would wait for the kernel's threads.
    os.fork = fork_process
    os._exit = partial(_exit_with_descendants, os.getpid(), os._exit)
    gc.freeze()  # garbage collection would write to all memory, and so copy it
    _renew_random_numbers()


def _exit_with_descendants(copy: int, exit_: Callable[[int], NoReturn], status: int) -> NoReturn:
    """End this process, and the descendants of the copy if it is the copy."""
    if os.getpid() == copy:
        _kill_descendants(copy)
    exit_(status)


def _reset_signals(seconds: float) -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the gate of the call is open
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + _LATE)


def _renew_random_numbers() -> None:
    """Reseed numpy, so that copies get different random numbers; Python reseeds ``random``."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        with contextlib.suppress(Exception):  # the user has a module of this name
            numpy_random.seed()


def detach_descriptors(connection: int) -> None:
    """Share no socket, pipe, terminal or file position with the kernel.

    A fork copies descriptors, not the files behind them: the copy would write to the kernel's
    sockets, keep pipes open whose end is waited for, and move the kernel's position in files.

    Args:
        connection: The descriptor of the connection to the kernel, which is kept.
    """
    # Nothing is closed: a number could be reused for another file, which objects that still hold
    # the number would close or write to.
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        with suppress(OSError):  # the one of the folder
            mode = os.fstat(number).st_mode
            if stat.S_ISREG(mode):
                _reopen(number)
            elif number != connection and _is_stream(number, mode):
                os.dup2(nothing, number, inheritable=False)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _is_stream(number: int, mode: int) -> bool:
    """Return whether a descriptor is a socket, pipe or terminal."""
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode) or os.isatty(number)


def _reopen(number: int) -> None:
    """Reopen a file's descriptor, so that it has its own position, equal to the kernel's."""
    flags = fcntl.fcntl(number, fcntl.F_GETFL) & _FLAGS
    copy = os.open(_SELF_FD / str(number), flags | os.O_CLOEXEC)
    try:
        os.lseek(copy, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(copy, number, inheritable=os.get_inheritable(number))
    finally:
        os.close(copy)
