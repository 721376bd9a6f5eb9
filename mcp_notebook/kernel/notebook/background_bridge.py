"""Starts, finds and stops the user's one background bridge, which serves live notebooks over HTTP.

Runs on the kernel's main thread (``%mcp serve``) and blocks it for a bounded time. The bridge is a
separate process that outlives the kernel. It publishes its record when it is ready.

If two notebooks start it at the same time, they share one bridge: starting and stopping take a file
lock, which the system releases if its holder dies.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from packaging.version import Version

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import (
    BridgeRecord,
    is_alive,
    read_bridge,
    read_start_time,
)
from mcp_notebook.errors import BridgeError
from mcp_notebook.settings.private_files import lock_file, make_private_folder
from mcp_notebook.settings.settings import Settings

logger = logging.getLogger(__name__)

_POLL = 0.05
"""Seconds between two checks of a file or process."""
_STOP_GRACE = 5.0
"""Seconds for the bridge to shut down; it needs less than two."""
_KILL_GRACE = 2.0
"""Seconds for the system to end a killed process."""
_MAX_LOG = 2**20
"""Bytes. A longer log is renamed when the bridge starts."""
_TAIL = 2_000
"""Characters of the log in an error message."""
_SPAWN = """
import subprocess, sys
flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
print(subprocess.Popen(sys.argv[1:], stdout=2, creationflags=flags).pid)
"""
"""Starts the bridge and exits, so that the bridge is not a child of the kernel: a child would
become a zombie when it ends, and some frontends kill a kernel together with its children."""


def find_bridge(settings: Settings) -> BridgeRecord | None:
    """Return the record of the background bridge; None if none is running."""
    return read_bridge(settings.bridge_file)


def start_bridge(settings: Settings) -> BridgeRecord:
    """Start the background bridge unless it is running, and return its record.

    A bridge of an older version is replaced, as newer notebooks may speak another protocol.

    Raises:
        BridgeError: It does not start; the message quotes its log.
    """
    with _hold_lock(settings):
        running = find_bridge(settings)
        if running is not None:
            if Version(running.version) >= Version(__version__):
                return running
            logger.warning(
                "Replacing the background bridge of version %s by version %s.",
                running.version,
                __version__,
            )
            _end_bridge(running, settings)
        return _launch(settings)


def stop_bridge(settings: Settings, *, grace: float = _STOP_GRACE) -> bool:
    """Stop the background bridge, and return whether one was running.

    Args:
        settings: The user's.
        grace: Seconds for it to shut down before it is killed.

    Raises:
        BridgeError: It does not stop.
    """
    with _hold_lock(settings):
        running = find_bridge(settings)
        if running is None:
            return False
        _end_bridge(running, settings, grace)
        return True


def _launch(settings: Settings) -> BridgeRecord:
    log = settings.home / "bridge.log"
    with _open_log(log) as (descriptor, begin):
        pid = _spawn(settings, descriptor)
        try:
            _wait_until(
                lambda: find_bridge(settings) is not None or read_start_time(pid) is None,
                settings.start_timeout,
            )
        except BaseException:  # the user interrupts the cell: leave nothing half-started
            _kill(pid)
            raise
    record = find_bridge(settings)
    if record is not None:
        return record
    has_ended = read_start_time(pid) is None
    _kill(pid)
    reason = (
        "exited while starting"
        if has_ended
        else f"did not start within {settings.start_timeout:g} s"
    )
    raise BridgeError(
        f"The background bridge {reason}. Its log, {log}, ends with:\n{_read_tail(log, begin)}\n"
        "To see more, run `mcp-notebook serve` in a terminal."
    )


def _spawn(settings: Settings, log: int) -> int:
    """Start the bridge and return its PID."""
    # -P: modules in the notebook's folder must not shadow those of the bridge.
    python = [sys.executable, "-P"]
    words = [*python, "-c", _SPAWN, *python, "-m", "mcp_notebook", "serve", "--background"]
    try:
        starter = subprocess.Popen(  # noqa: S603 - our own command
            words,
            env=build_environment(settings),
            cwd=settings.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # Jupyter interrupts the kernel's whole process group; on Windows, Ctrl-C in a console
            # reaches all its processes.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        with starter:
            try:
                answer, _ = starter.communicate(timeout=settings.start_timeout)
            except BaseException:  # too slow, or the user interrupts the cell
                _kill_with_children(starter.pid)
                raise
        if starter.returncode:
            raise subprocess.CalledProcessError(starter.returncode, words)
    except (OSError, subprocess.SubprocessError) as error:
        raise BridgeError(
            f"The background bridge cannot be started with {sys.executable}: {error}. "
            "Run `mcp-notebook serve` in a terminal instead."
        ) from None
    return int(answer)


def _kill_with_children(starter: int) -> None:
    """Kill the starter process, and the bridge if it was started."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            # It leads a session, which includes the bridge.
            os.killpg(starter, signal.SIGKILL)
        return
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(starter)
        children = process.children(recursive=True)
        for one in (process, *children):
            one.kill()


def build_environment(settings: Settings) -> dict[str, str]:
    """Return the environment for a command of ours: the kernel's, with this notebook's settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_NOTEBOOK")}
    return env | settings.environment()


def _end_bridge(record: BridgeRecord, settings: Settings, grace: float = _STOP_GRACE) -> None:
    with contextlib.suppress(psutil.Error):
        psutil.Process(record.pid).terminate()
    if not _wait_until(lambda: not is_alive(record), grace):
        _kill(record.pid)
    if is_alive(record):
        raise BridgeError(
            f"The background bridge (process {record.pid}) does not stop. End it yourself, for "
            f"example with `kill -9 {record.pid}`."
        )
    # It removes its own record, unless it was killed.
    settings.bridge_file.unlink(missing_ok=True)


def _kill(pid: int) -> None:
    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).kill()
    _wait_until(lambda: read_start_time(pid) is None, _KILL_GRACE)


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition, and return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


@contextlib.contextmanager
def _open_log(log: Path) -> Iterator[tuple[int, int]]:
    """Open the log, readable by the user only; yields its descriptor and its length so far."""
    make_private_folder(log.parent)
    if log.exists() and log.stat().st_size > _MAX_LOG:
        log.replace(log.with_suffix(".log.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        yield descriptor, os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _read_tail(log: Path, begin: int) -> str:
    text = log.read_bytes()[begin:].decode(errors="replace").strip()
    return text[-_TAIL:] or "(nothing)"


@contextlib.contextmanager
def _hold_lock(settings: Settings) -> Iterator[None]:
    """Hold the lock for starting and stopping the bridge.

    Raises:
        BridgeError: Another notebook holds it for too long.
    """
    path = make_private_folder(settings.home) / "bridge.lock"
    timeout = settings.start_timeout + _STOP_GRACE + _KILL_GRACE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _wait_until(lambda: _try_lock(descriptor), timeout):
            raise BridgeError(
                "Another notebook has been starting or stopping the background bridge for "
                f"{timeout:g} s. Try again."
            )
        yield
    finally:
        os.close(descriptor)  # releases the lock


def _try_lock(descriptor: int) -> bool:
    try:
        return lock_file(descriptor)
    except OSError:  # a network disk without locks must not prevent starting a bridge
        return True
