"""The records that live kernels publish so that bridges find them: write, read, watch, prune.

A record is a small JSON file (mode 0600) in a folder that depends on HOME only. A kernel writes and
removes its own record. Bridges read and watch all records, and remove those of dead processes.
Runs in every process; contacts none.
"""

import contextlib
import logging
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from mcp_notebook.errors import SettingsError

logger = logging.getLogger(__name__)

_SUFFIX = ".json"
_RESCAN = 2.0
"""Seconds between two scans of the folder, for network disks that send no file events."""
_WAIT_MS = 300
"""Milliseconds that the watching thread waits at a time. Cancelling takes as long, because nothing
can stop the thread."""
_START_TOLERANCE = 60.0
"""Seconds by which two readings of a process's start time may differ. They depend on the wall
clock, which may jump (time servers, virtual machines that resume). Too small a tolerance would
prune the record of a live kernel; too large a one costs one refused connection."""


class Record(BaseModel):
    """What bridges need to know about a live kernel; readable by the user only."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    """Unique for each load of the extension; also the file's name."""
    pid: int
    started: float
    """When the process started, in seconds since the epoch: pids are reused."""
    host: str
    """Name of the machine: several machines may share a home folder."""
    version: str
    """The kernel's version of mcp-notebook."""
    protocol: int
    """The kernel's version of the link protocol."""
    notebook: str | None = None
    """Path of the notebook, if the kernel knows it."""
    name: str
    """Short name of the notebook, for messages and for the full names of tools."""
    owner: Literal["user", "bridge"] = "user"
    """Who started the kernel. A headless kernel is served only by the bridge that started it."""
    socket: str | None = None
    """Path of the Unix socket; None if the kernel listens on TCP."""
    port: int | None = None
    """Port on 127.0.0.1, on systems without Unix sockets."""
    token: str | None = None
    """The token that connections over TCP have to present."""


class BridgeRecord(BaseModel):
    """What notebooks need to know about the user's background bridge (``bridge.json``)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    started: float
    """When the process started, in seconds since the epoch."""
    version: str
    url: str
    """URL of the endpoint, including ``/mcp``; the token is in a file of its own."""


def make_id() -> str:
    """Return an id for a record; a short one, because it becomes part of a socket's path."""
    return secrets.token_hex(6)


def read_start_time(pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None if it does not exist."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.Error:
        return None


def make_private_folder(folder: Path) -> Path:
    """Create a folder that only the user can access, and return it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def write_private(path: Path, text: str) -> None:
    """Write a file atomically; only the user can read it."""
    make_private_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")  # is 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_record(folder: Path, record: Record) -> Path:
    """Publish a record and return its file."""
    path = folder / f"{record.id}{_SUFFIX}"
    write_private(path, record.model_dump_json(indent=1))
    return path


def remove_record(folder: Path, record_id: str) -> None:
    """Remove a record. Does nothing if it does not exist."""
    (folder / f"{record_id}{_SUFFIX}").unlink(missing_ok=True)


def is_alive(record: Record | BridgeRecord) -> bool:
    """Return whether the process that wrote a record still runs; for records of this machine."""
    started = read_start_time(record.pid)
    return started is not None and abs(started - record.started) < _START_TOLERANCE


def list_live_records(folder: Path) -> tuple[Record, ...]:
    """Return the records of live kernels on this machine, oldest first, and prune dead ones.

    Files that are not valid records are ignored, because a newer version may have written them, and
    so are those of other users, whose tools must not reach this user's assistant.
    """
    records = []
    for record in read_records(folder):
        if record.host != socket.gethostname():
            continue
        if is_alive(record):
            records.append(record)
        else:
            remove_dead_record(folder, record)
    return tuple(records)


def read_records(folder: Path) -> tuple[Record, ...]:
    """Return the user's records of all machines, also of dead kernels, oldest first."""
    records = []
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            if not _is_mine(path):
                continue
            record = Record.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
        if path.stem == record.id:
            records.append(record)
    return tuple(sorted(records, key=lambda record: (record.started, record.id)))


def read_bridge(path: Path) -> BridgeRecord | None:
    """Return the record of the user's background bridge, or None if it does not run."""
    try:
        record = BridgeRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return record if is_alive(record) else None


def remove_dead_record(folder: Path, record: Record) -> None:
    """Remove a dead kernel's record and socket."""
    remove_record(folder, record.id)
    # Only a socket: a record must not be able to delete any other file.
    with contextlib.suppress(OSError):
        if record.socket is not None and Path(record.socket).is_socket():
            Path(record.socket).unlink(missing_ok=True)


def _is_mine(path: Path) -> bool:
    return sys.platform == "win32" or path.stat().st_uid == os.geteuid()


async def watch_records(folder: Path) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the live records, now and after each change in the folder; never ends.

    Also yields every few seconds without a change, for disks that send no events.

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
    # In a thread: reading the folder may be slow on a network disk.
    yield await to_thread.run_sync(list_live_records, folder)
    async for _ in _changes(folder):
        yield await to_thread.run_sync(list_live_records, folder)


async def _changes(folder: Path) -> AsyncIterator[object]:
    """Yield after each change, and every few seconds."""
    from watchfiles import awatch  # noqa: PLC0415 - kernels do not watch, and import nothing for it

    rescan_at = monotonic() + _RESCAN
    for polling in (None, True):
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
                    rescan_at = monotonic() + _RESCAN
        except (OSError, RuntimeError) as error:  # inotify watches run out on shared machines
            if polling:
                raise
            logger.warning("%s cannot be watched (%s), so it is polled", folder, error)
