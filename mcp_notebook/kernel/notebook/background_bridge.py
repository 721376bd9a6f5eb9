"""Starts, finds and stops the user's one background bridge, which serves live notebooks over HTTP.

Runs in the kernel, on its main thread (``%mcp serve``, ``%mcp stop``); blocks, within bounds. The
bridge is a process of its own that outlives the kernel: what it serves, where it listens and when
it ends are `bridge.app`'s business. It says that it is ready by publishing its record.

Two notebooks that start it at once end with one bridge: whoever starts or stops it holds a lock,
which the system takes back when its holder dies.
"""

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from packaging.version import Version

from mcp_notebook._version import __version__
from mcp_notebook.discovery import (
    BridgeRecord,
    is_alive,
    private_folder,
    process_started,
    read_bridge,
)
from mcp_notebook.errors import BridgeError
from mcp_notebook.settings import Settings

logger = logging.getLogger(__name__)

_POLL = 0.05
"""Seconds between two looks at a file or process."""
_STOP_GRACE = 5.0
"""Seconds that the bridge has to end by itself; it needs less than two."""
_KILL_GRACE = 2.0
"""Seconds for the system to end a killed process."""
_MAX_LOG = 2**20
"""Bytes. A longer log is put aside when the bridge starts."""
_TAIL = 2_000
"""Characters of the log in an error message."""
_SPAWN = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdout=2).pid)"
"""Starts a process and ends: the bridge is then nobody's child. As the kernel's own it would leave
a zombie when it ends, and some frontends kill a kernel with all of its children."""


def find_bridge(settings: Settings) -> BridgeRecord | None:
    """Return the record of the background bridge, None if none runs."""
    return read_bridge(settings.bridge_file)


def start_bridge(settings: Settings) -> BridgeRecord:
    """Return the record of the background bridge, started if it does not run.

    A bridge of an older version is replaced: it could not talk to this notebook for long.

    Raises:
        BridgeError: It does not start; the message holds what it said.
    """
    with _hold_lock(settings):
        running = find_bridge(settings)
        if running is not None:
            if Version(running.version) >= Version(__version__):
                return running
            logger.warning(
                "The background bridge of version %s is replaced by version %s.",
                running.version,
                __version__,
            )
            _end_bridge(running, settings)
        return _launch(settings)


def stop_bridge(settings: Settings) -> bool:
    """End the background bridge, and return whether there was one.

    Raises:
        BridgeError: It does not end.
    """
    with _hold_lock(settings):
        running = find_bridge(settings)
        if running is None:
            return False
        _end_bridge(running, settings)
        return True


def _launch(settings: Settings) -> BridgeRecord:
    log = settings.home / "bridge.log"
    with _open_log(log) as (descriptor, begin):
        pid = _spawn(settings, descriptor)
        try:
            _wait_until(
                lambda: find_bridge(settings) is not None or process_started(pid) is None,
                settings.start_timeout,
            )
        except BaseException:  # the user's interrupt: what was begun is not left half-started
            _kill(pid)
            raise
    record = find_bridge(settings)
    if record is not None:
        return record
    ended = process_started(pid) is None
    _kill(pid)
    reason = "ended while starting" if ended else f"did not start in {settings.start_timeout:g} s"
    raise BridgeError(
        f"The background bridge {reason}; its log {log} says:\n{_read_tail(log, begin)}\n"
        "To see more, run `mcp-notebook serve` in a terminal."
    )


def _spawn(settings: Settings, log: int) -> int:
    """Start the bridge and return its process's id."""
    # -P: modules in the notebook's folder must not hide those of the bridge.
    python = [sys.executable, "-P"]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [*python, "-c", _SPAWN, *python, "-m", "mcp_notebook", "serve", "--background"],
            env=_environment(settings),
            cwd=settings.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # Jupyter interrupts the kernel's whole process group.
            start_new_session=True,
            timeout=settings.start_timeout,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BridgeError(
            f"The background bridge cannot be started with {sys.executable}: {error}. "
            "Run `mcp-notebook serve` in a terminal."
        ) from None
    return int(done.stdout)


def _environment(settings: Settings) -> dict[str, str]:
    """Return the kernel's environment without its settings, and the settings of this notebook."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_NOTEBOOK")}
    return env | settings.environment()


def _end_bridge(record: BridgeRecord, settings: Settings) -> None:
    with contextlib.suppress(psutil.Error):
        psutil.Process(record.pid).terminate()
    if not _wait_until(lambda: not is_alive(record), _STOP_GRACE):
        _kill(record.pid)
    if is_alive(record):
        raise BridgeError(
            f"The background bridge (process {record.pid}) does not end. End it yourself, for "
            f"example with `kill -9 {record.pid}`."
        )
    # It removes its own record, unless it was killed.
    settings.bridge_file.unlink(missing_ok=True)


def _kill(pid: int) -> None:
    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).kill()
    _wait_until(lambda: process_started(pid) is None, _KILL_GRACE)


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition and return whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


@contextlib.contextmanager
def _open_log(log: Path) -> Iterator[tuple[int, int]]:
    """Yield the log's descriptor and its length now; readable by the user only."""
    private_folder(log.parent)
    if log.exists() and log.stat().st_size > _MAX_LOG:
        log.replace(log.with_suffix(".log.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        yield descriptor, os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _read_tail(log: Path, begin: int) -> str:
    text = log.read_bytes()[begin:].decode(errors="replace").strip()
    return text[-_TAIL:] or "nothing"


@contextlib.contextmanager
def _hold_lock(settings: Settings) -> Iterator[None]:
    """Hold the right to start and stop the bridge.

    Raises:
        BridgeError: Another notebook keeps it for too long.
    """
    path = private_folder(settings.home) / "bridge.lock"
    patience = settings.start_timeout + _STOP_GRACE + _KILL_GRACE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _wait_until(lambda: _try_lock(descriptor), patience):
            raise BridgeError(
                "Another notebook has been starting or stopping the background bridge for "
                f"{patience:g} s. Try again."
            )
        yield
    finally:
        os.close(descriptor)  # gives the lock back


def _try_lock(descriptor: int) -> bool:
    """Try to lock a file until it is closed, and return whether that worked."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # PermissionError on Windows
        return False
    except OSError:  # a network disk without locks must not keep the user from starting a bridge
        return True
    return True
