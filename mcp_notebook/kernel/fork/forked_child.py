"""A copy of this process, made by a fork: its start, its messages, its end.

Runs in the user's kernel: a `ForkedChild` is started, and waited for, on the thread of one call,
and interrupted from any other. The copy has all data of the kernel, and of its threads only the one
that made it. `leave_kernel` is what the copy does first: it lets go of what it shares with the
kernel (sockets, streams, signals) and makes sure that it ends when the kernel does. What it runs is
up to who starts it; it never returns from there.

The thread that forks is a new one for each call, not the main thread, which a cell may hold, and
not the endpoint's. Among its advantages: OpenMP of GCC keeps its threads by the thread that started
them, so a new thread's copy starts its own ones and does not wait for those that are gone.
"""

import contextlib
import ctypes
import fcntl
import gc
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn

from mcp_notebook.kernel.fork.endless_wait import waits_for_ever
from mcp_notebook.kernel.fork.raw_fork import (
    BlasThreads,
    fork_process,
    fork_terminal,
    wait_for_malloc,
)

GRACE = 0.5
"""Seconds between the interrupt, after which Python code cleans up, and SIGKILL."""
_LATE = 5.0
"""Seconds after its time limit when the system ends a copy whose kernel cannot."""
_LOOK = 0.1
"""Seconds between two looks at whether a copy still lives that sends nothing."""
_MOMENT = 0.001
"""Seconds between two looks at whether a copy has ended that is about to."""
_FIRST_LOOK = 0.01
"""Seconds between two looks at whether a copy has begun."""
_BEGIN_LIMIT = 10.0
"""Seconds that a copy has to begin where the system does not tell what it waits for; it takes
milliseconds."""
_ATTEMPTS = 30
"""Copies that are made until one begins. At worst seen, every third did not."""
_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36
"""``PR_SET_PDEATHSIG`` and ``PR_SET_CHILD_SUBREAPER`` of Linux's ``prctl``."""
_ROUNDS = 10
"""Looks at which programs a copy has started: those that are killed may have started others."""
_FIRST_MESSAGE = b"begun"
"""The first thing that a copy sends."""
_FAILED = 70
"""The exit status of a copy that could not do its work: ``EX_SOFTWARE``."""
_OPEN_AGAIN = Path("/proc/self/fd")
"""Where Linux opens the file of a descriptor once more; macOS has nothing like it."""
_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_APPEND
"""The flags of an open file that are needed to open it again."""


class ForkedChild:
    """One copy of the kernel, as the kernel sees it."""

    def __init__(self) -> None:
        self.interrupted = False
        """Whether it has been interrupted."""
        self.status: int | None = None
        """How it ended, as ``os.waitstatus_to_exitcode`` says it; None: unknown."""
        self.is_stuck = False
        """Whether it was ended as it waited for a thread that it does not have."""
        self.is_disconnected = False
        """Whether it was ended as it had closed its connection and lived on."""
        self._lock = threading.Lock()
        self._pid: int | None = None
        """None once no process is left to send a signal to. Written by the call's thread, under the
        lock, so that no signal goes to a PID that has been reused."""
        self._kill_at: float | None = None
        self._connection: Connection[Any, Any] | None = None

    def start(
        self,
        run: Callable[["Connection[Any, Any]"], object],
        *,
        seconds: float,
    ) -> None:
        """Make the copy.

        Args:
            run: What it runs, with its end of the connection.
            seconds: After a little more than these the system ends it.

        Raises:
            OSError: The system gives no memory or process for it, or no copy begins.
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
        ours, theirs = Pipe()
        kernel = os.getpid()
        # The copy has the handlers of the kernel until it has reset them: of the user's cell, say.
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
                os._exit(_FAILED)  # whatever was raised: only the kernel goes on from here
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._connection = ours
        with suppress(OSError):  # it has done so itself, or has ended
            os.setpgid(pid, pid)
        with self._lock:
            self._pid = pid
        if self.interrupted:
            self._end()

    def _begins(self) -> bool:
        """Wait until it begins or ends, and return False if it never would."""
        assert self._connection is not None
        deadline = monotonic() + _BEGIN_LIMIT
        # First the message, then a look: beside a cell that computes, each system call costs the
        # time until that lets go of Python.
        while not self._connection.poll(_FIRST_LOOK):
            if not self._lives():
                break
            if monotonic() >= deadline:
                return False
        with suppress(EOFError, OSError):  # it has ended
            if self._connection.poll(0):  # it may have begun and ended between the two looks
                self._connection.recv_bytes()
        return not self.is_stuck

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in its code, and end it soon after; from any thread.

        Returns:
            Whether it lives.
        """
        with self._lock:
            if self._kill_at is None:
                self._kill_at = monotonic() + GRACE
            self.interrupted = True
            if self._pid is not None:
                os.kill(self._pid, signal.SIGINT)
            return self._pid is not None

    def receive(self) -> Iterator[Any]:
        """Yield what it sends, until it ends; `answer` may follow each of them."""
        assert self._connection is not None
        try:
            while True:
                if self._kill_at is not None and monotonic() >= self._kill_at:
                    self._end()
                if self._connection.poll(_LOOK):
                    yield self._connection.recv()
                elif not self._lives():
                    break
            while self._connection.poll(0):  # it sent this between the two looks
                yield self._connection.recv()
        except (EOFError, OSError):
            self._await_end()

    def answer(self, message: Any) -> None:
        """Send it what it waits for."""
        assert self._connection is not None
        with suppress(OSError):  # it has ended meanwhile
            self._connection.send(message)

    def close(self) -> None:
        """End it, with all programs that it has started, and leave nothing of it."""
        self._end()
        if self._connection is not None:
            self._connection.close()

    def _lives(self) -> bool:
        """Return whether it has not ended, and is to go on."""
        if self._kill_at is not None and monotonic() >= self._kill_at:
            self._end()
        pid = self._pid
        if pid is None:
            return False
        with self._lock:
            if self._reap(pid, os.WNOHANG):
                self._pid = None
        if self._pid is None:
            _kill_group(pid)  # nobody has its number yet, nor as long as a program is in the group
        elif waits_for_ever(pid):
            self.is_stuck = True
            self._end()
        return self._pid is not None

    def _await_end(self) -> None:
        """Wait until one that has closed its connection has ended, or end it."""
        deadline = monotonic() + GRACE
        while self._lives():
            if monotonic() >= deadline:
                self.is_disconnected = True
                self._end()
            sleep(_MOMENT)

    def _end(self) -> None:
        """Kill it and those that it has started, and wait for it."""
        with self._lock:  # not while it waits: `interrupt` does not
            pid, self._pid = self._pid, None
        if pid is None:
            return
        # Until it is waited for, nobody else can have its number.
        with suppress(OSError):
            os.kill(pid, signal.SIGSTOP)  # so that it starts no further programs
        _kill_descendants(pid)
        _kill_group(pid)
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        self._reap(pid, 0)

    def _reap(self, pid: int, options: int) -> bool:
        """Return whether it has ended and nothing is left of it."""
        try:
            ended, status = os.waitpid(pid, options)
        except ChildProcessError:  # somebody else waits for all children, or ignores SIGCHLD
            return True
        if ended:
            self.status = os.waitstatus_to_exitcode(status)
        return bool(ended)


def _kill_group(pid: int) -> None:
    """Kill a copy, unless it has ended, and the programs that it has started."""
    with suppress(OSError):  # there are none
        os.killpg(pid, signal.SIGKILL)


def _kill_descendants(pid: int) -> None:
    """Kill the programs that a copy has started, also those in a session of their own.

    Linux tells which they are as long as the copy lives, which adopts those whose parents end.
    """
    for _ in range(_ROUNDS):
        living = [child for child in _list_descendants(pid) if _is_running(child)]
        for child in living:
            with suppress(OSError):  # it has ended meanwhile
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
    """Return whether a process has not ended; one that has stays until it is waited for."""
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
    """Run the copy to its end: what the kernel runs at its end is not the copy's."""
    status = _FAILED
    try:
        leave_kernel(connection.fileno(), seconds=seconds, mask=mask)
        wait_for_malloc()
        BlasThreads().do_without()
        connection.send_bytes(_FIRST_MESSAGE)
        run(connection)
        status = 0
    finally:
        os._exit(status)  # ends what was started here as well, see `leave_kernel`


def leave_kernel(connection: int, *, seconds: float, mask: Iterable[int]) -> None:
    """Let go of what this process shares with the kernel that it is a copy of.

    Args:
        connection: The descriptor of its connection to the kernel.
        seconds: Its time limit.
        mask: The signals that the kernel blocks; all are blocked now.
    """
    kernel = os.getppid()
    with suppress(OSError):
        os.setpgid(0, 0)  # interrupts of the user's cells are not for it
    _reset_signals(seconds)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    let_go_of_descriptors(connection)
    with suppress(OSError, AttributeError):  # not on macOS
        control = ctypes.CDLL(None).prctl
        control(_DIE_WITH_PARENT, signal.SIGKILL)
        control(_ADOPT_ORPHANS, 1)
    with suppress(OSError):  # if memory gets short, it goes and not the kernel
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if os.getppid() != kernel:
        os._exit(0)
    # The handlers of C libraries would wait for the kernel's threads.
    os.fork, os.forkpty = fork_process, fork_terminal
    os._exit = partial(_exit_with_descendants, os.getpid(), os._exit)
    gc.freeze()  # looking for garbage would write to, and so copy, all memory
    _renew_random_numbers()


def _exit_with_descendants(copy: int, exit_: Callable[[int], NoReturn], status: int) -> NoReturn:
    """End this process, with the programs that it has started if it is the copy."""
    if os.getpid() == copy:
        _kill_descendants(copy)
    exit_(status)


def _reset_signals(seconds: float) -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until its code takes interrupts
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + _LATE)


def _renew_random_numbers() -> None:
    """Give copies different random numbers; Python does so for those of ``random``."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        with contextlib.suppress(Exception):  # a module of the user's by this name
            numpy_random.seed()


def let_go_of_descriptors(connection: int) -> None:
    """Share no socket, pipe or terminal with the kernel, and no position in a file.

    A fork copies numbers, not what they stand for: a socket of the copy's is the kernel's, the end
    of a pipe that it keeps open is an end that somebody waits for, and where it reads in a file,
    the kernel goes on to read after that.

    Args:
        connection: The descriptor of the connection to the kernel, which stays.
    """
    # Nothing is closed: the number could be given to a file, which those who believe that it is
    # theirs would close or write to.
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        with suppress(OSError):  # the one of the folder
            mode = os.fstat(number).st_mode
            if stat.S_ISREG(mode):
                _open_again(number)
            elif number != connection and _is_talk(number, mode):
                os.dup2(nothing, number, inheritable=False)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _is_talk(number: int, mode: int) -> bool:
    """Return whether somebody at the other end would hear of what is done here."""
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode) or os.isatty(number)


def _open_again(number: int) -> None:
    """Give a descriptor of a file a position of its own, which is where the kernel's is now."""
    flags = fcntl.fcntl(number, fcntl.F_GETFL) & _FLAGS
    copy = os.open(_OPEN_AGAIN / str(number), flags | os.O_CLOEXEC)
    try:
        os.lseek(copy, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(copy, number, inheritable=os.get_inheritable(number))
    finally:
        os.close(copy)
