"""The records by which bridges find live kernels: writes, reads, watches and prunes them.

A record is a small JSON file (mode 0600) in a folder that depends only on HOME. A kernel writes and
removes its own record. Bridges read and watch all records, and remove the records of dead
processes. Other files in the folder are ignored. Runs in every process; contacts no other process.
"""

import contextlib
import errno
import logging
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic, time
from typing import Annotated, Literal

from msgspec import Meta, Struct

from mcp_notebook.discovery.departures import Departure, make_printable, write_departure
from mcp_notebook.errors import SettingsError
from mcp_notebook.lean_imports import postpone_names
from mcp_notebook.settings.private_files import (
    is_own,
    make_private_folder,
    read_private_json,
    write_private_json,
)

logger = logging.getLogger(__name__)

_SUFFIX = ".json"
_RESCAN = 2.0
"""Seconds between two scans of the folder, for network disks that send no events."""
_WAIT_MS = 300
"""Milliseconds that the watching thread blocks at a time, and thus the time to cancel it."""
_START_TOLERANCE = 60.0
"""Seconds by which two readings of a process's start time may differ, because the wall clock may
jump (time servers, resumed virtual machines). If this is too small, the record of a live kernel is
pruned; if too large, one connection is refused."""

_Pid = Annotated[int, Meta(gt=0, lt=2**32)]
_Path = Annotated[str, Meta(min_length=1, pattern=r"^[^\x00]*$")]
"""A path that the operating system accepts."""


class Process(Struct, frozen=True):
    """A process that owns a file; it may have ended since."""

    pid: _Pid
    started: float
    """When the process started, in seconds since the epoch, because PIDs are reused."""


class Record(Process, frozen=True):
    """The record of a live kernel, for bridges."""

    id: str
    """Unique for each load of the extension; also the stem of the file's name."""
    host: str
    """Name of the machine, because several may share a home folder."""
    version: str
    """The kernel's version of mcp-notebook."""
    protocol: int
    """The kernel's version of the link protocol."""
    name: str
    """Short name of the notebook on one line, for messages and for the full names of tools."""
    notebook: _Path | None = None
    """Path of the notebook; None if the kernel does not know it."""
    first_notebook: _Path | None = None
    """Its path when the kernel started; a restarted kernel gets the same."""
    jupyter_id: str | None = None
    """The kernel's id in its Jupyter Server or other frontend, on one line."""
    python: _Path | None = None
    """Its Python, which has mcp-notebook; None if Python does not know its own path."""
    owner: Literal["user", "bridge"] = "user"
    """Who started the kernel. Only the bridge that started a headless kernel serves it."""
    socket: _Path | None = None
    """Path of the Unix socket; None if the kernel listens on TCP."""
    port: Annotated[int, Meta(gt=0, lt=2**16)] | None = None
    """Port on 127.0.0.1, on systems without Unix sockets."""
    token: str | None = None
    """The token that TCP connections must present."""

    def __post_init__(self) -> None:
        make_printable(self, "name", "jupyter_id")


class BridgeRecord(Process, frozen=True):
    """The record of the user's background bridge (``bridge.json``), for notebooks."""

    version: str
    url: str
    """URL of the endpoint, including ``/mcp``; the token is in a file of its own."""
    notices: tuple[str, ...] = ()
    """Messages for the user who starts it, for example that the token is new."""


def read_start_time(pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None if it does not exist."""
    import psutil  # noqa: PLC0415 - a bridge without notebooks reads none

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.Error:
        return None


def write_record(folder: Path, record: Record) -> Path:
    """Publish a record and return its file."""
    path = folder / f"{record.id}{_SUFFIX}"
    write_private_json(path, record)
    return path


def remove_record(folder: Path, record_id: str) -> None:
    """Remove a record. Does nothing if it does not exist."""
    (folder / f"{record_id}{_SUFFIX}").unlink(missing_ok=True)


def is_alive(process: Process) -> bool:
    """Return whether a process on this machine is still running."""
    started = read_start_time(process.pid)
    return started is not None and abs(started - process.started) < _START_TOLERANCE


class IgnoredFiles:
    """Invalid files in the folder of records; each is logged once, not at every scan.

    Owned by the scanner of the folder: a command, or the watching task of a bridge.
    """

    def __init__(self) -> None:
        self._paths: frozenset[Path] = frozenset()

    def update(self, problems: dict[Path, str]) -> None:
        """Store the files that a scan ignored, with the reasons, and log the new ones."""
        for path in problems.keys() - self._paths:
            logger.warning("Ignoring %r, not a valid record: %s.", str(path), problems[path])
        self._paths = frozenset(problems)


def list_live_records(folder: Path, ignored: IgnoredFiles | None = None) -> tuple[Record, ...]:
    """Return the records of live kernels on this machine, oldest first, and prune dead ones.

    Args:
        folder: The folder of the records.
        ignored: Takes the invalid files; None to ignore them silently.
    """
    records = []
    for record in read_records(folder, ignored):
        if record.host != socket.gethostname():
            continue
        if is_alive(record):
            records.append(record)
        else:
            _prune(folder, record)
    return tuple(records)


def read_records(folder: Path, ignored: IgnoredFiles | None = None) -> tuple[Record, ...]:
    """Return the user's records of all machines, including those of dead kernels, oldest first.

    Invalid files are ignored, because a newer version may have written them. Files of other users
    are ignored, because their tools must not reach this user's assistant.

    Args:
        folder: The folder of the records.
        ignored: Takes the invalid files; None to ignore them silently.
    """
    records = []
    problems: dict[Path, str] = {}
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except FileNotFoundError:
        paths = []
    except OSError as error:
        paths, problems[folder] = [], _describe_problem(error)
    for path in paths:
        try:
            records.append(_read_record(path))
        except FileNotFoundError:  # its kernel has just left
            continue
        except (OSError, ValueError) as error:
            problems[path] = _describe_problem(error)
    if ignored is not None:
        ignored.update(problems)
    return tuple(sorted(records, key=lambda record: (record.started, record.id)))


def _read_record(path: Path) -> Record:
    """Return the record in a file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a valid record, or belongs to another file.
    """
    record = read_private_json(path, Record)
    if path.stem != record.id:
        raise ValueError(f"its `id` is {record.id!r}, which does not match the file name")
    return record


def _describe_problem(error: OSError | ValueError) -> str:
    """Describe what is wrong with a file, as the end of a sentence."""
    if getattr(error, "errno", None) == errno.ELOOP:  # links are not followed
        return "it is a symbolic link"
    reason = getattr(error, "strerror", None)
    return f"it cannot be read ({reason})" if reason else str(error)


def read_bridge(path: Path) -> BridgeRecord | None:
    """Return the record of the user's background bridge; None if it is not running."""
    try:
        record = read_private_json(path, BridgeRecord)
    except (OSError, ValueError):
        return None
    return record if is_alive(record) else None


def make_socket_name(record_id: str) -> str:
    """Return the file name of a kernel's Unix socket."""
    return f"{record_id}.sock"


def forget_record(folder: Path, record: Record, reason: str | None = None) -> None:
    """Remove a record and its socket, and write a note that explains the missing notebook.

    Does nothing if they do not exist or cannot be removed.

    Args:
        folder: The folder of the records.
        record: The record of the kernel that leaves.
        reason: Why it leaves, as a sentence; None if it crashed or was killed.
    """
    if record.owner == "user":  # the bridge of a headless kernel knows what became of it
        departure = Departure(
            notebook=record.notebook,
            first_notebook=record.first_notebook,
            name=record.name,
            reason=reason,
            at=time(),
        )
        write_departure(folder, departure)
    with contextlib.suppress(OSError):
        remove_record(folder, record.id)
    if record.socket is None:
        return
    # A forged record must not remove another file, or the socket of another kernel.
    path = Path(record.socket)
    with contextlib.suppress(OSError):
        status = path.lstat()
        is_its_own = path.name == make_socket_name(record.id) and is_own(status)
        if is_its_own and stat.S_ISSOCK(status.st_mode):
            path.unlink()


def _prune(folder: Path, record: Record) -> None:
    """Forget a dead kernel, unless its successor has published a record with the same id."""
    with contextlib.suppress(OSError, ValueError):
        if _read_record(folder / f"{record.id}{_SUFFIX}") == record:
            forget_record(folder, record)


async def watch_records(
    folder: Path, *, rescan_interval: float = _RESCAN
) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the live records, now and after each change in the folder; never ends.

    Args:
        folder: The folder of the records.
        rescan_interval: Seconds after which this yields without a change, for file systems that
            send no events.

    Raises:
        SettingsError: The folder does not exist and cannot be created.
    """
    from anyio import to_thread  # noqa: PLC0415 - kernels do not watch, as below

    try:
        make_private_folder(folder)
    except OSError as error:
        raise SettingsError(
            f"The folder {folder} cannot be used: {error.strerror}. Set MCP_NOTEBOOK_HOME to a "
            "folder that you can write to, both here and for the notebooks."
        ) from None
    ignored = IgnoredFiles()
    # In a thread: reading the folder may be slow on a network disk.
    yield await to_thread.run_sync(list_live_records, folder, ignored)
    async for _ in _changes(folder, rescan_interval):
        yield await to_thread.run_sync(list_live_records, folder, ignored)


async def _changes(folder: Path, rescan_interval: float) -> AsyncIterator[object]:
    """Yield after each change and every few seconds, even if the folder is removed; never ends."""
    from anyio import sleep  # noqa: PLC0415 - kernels do not watch, and import nothing for it

    postpone_names("watchfiles")  # whose `run` imports multiprocessing
    from watchfiles.main import awatch  # noqa: PLC0415

    rescan_at = monotonic() + rescan_interval
    polling = None
    while True:
        try:
            async for change in awatch(
                folder,
                watch_filter=lambda _, path: path.endswith(_SUFFIX),
                debounce=50,
                step=10,
                rust_timeout=_WAIT_MS,
                yield_on_timeout=True,
                force_polling=polling,
                recursive=False,
            ):
                if change or monotonic() > rescan_at:
                    yield change
                    rescan_at = monotonic() + rescan_interval
        # `awatch` raises a group for errors while it runs, such as a file name that is not UTF-8.
        except (OSError, RuntimeError, ExceptionGroup) as error:
            # Inotify watches run out on shared machines. A folder that was removed comes back with
            # the next kernel.
            if polling is None and folder.is_dir():  # noqa: ASYNC240 - once
                reasons = error.exceptions if isinstance(error, ExceptionGroup) else [error]
                logger.warning("%s cannot be watched (%s), so it is polled", folder, reasons[0])
                polling = True
            else:
                await sleep(rescan_interval)
                yield None
