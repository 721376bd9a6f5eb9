"""The record that a live kernel publishes so that bridges find it: write, read, watch, prune.

A record is a small JSON file (mode 0600) in a folder that is found from HOME alone. The kernel
writes and removes its own (`kernel.extension`); bridges read and watch them, and remove those whose
process is gone. No process is contacted here: that is `bridge.kernels.links`' business.
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
"""Seconds between looks at the folder where the system sends no file events (network disks)."""
_WAIT_MS = 300
"""Milliseconds that the watching thread waits at a time: a cancel takes as long, since it cannot
stop the thread."""
_START_TOLERANCE = 60.0
"""Seconds by which two readings of a process's start may differ: they are computed from the wall
clock, which steps (time servers, virtual machines that wake). Too strict would prune a live
kernel's record; too lax costs one refused connection."""


class Record(BaseModel):
    """What a live kernel says about itself; readable by the user only."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    """Unique for each load of the extension; also the file's name."""
    pid: int
    started: float
    """When the process started, in seconds since the epoch: a pid alone may be another process."""
    host: str
    """Name of the machine: a home folder may be shared by several."""
    version: str
    """The kernel's version of mcp-notebook."""
    protocol: int
    """The kernel's version of the link."""
    notebook: str | None = None
    """Path of the notebook, where the kernel knows it."""
    name: str
    """Short name of the notebook, for people and for telling tools of one name apart."""
    owner: Literal["user", "bridge"] = "user"
    """Who started the kernel: only its bridge serves a headless one."""
    socket: str | None = None
    """Path of the Unix socket, or None: TCP."""
    port: int | None = None
    """Port on 127.0.0.1, where there are no Unix sockets."""
    token: str | None = None
    """Needed on TCP."""


class BridgeRecord(BaseModel):
    """What the user's background HTTP bridge says about itself (``bridge.json``)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    started: float
    """When the process started, in seconds since the epoch."""
    version: str
    url: str
    """Address of the endpoint, with ``/mcp``; the token is in its own file."""


def new_id() -> str:
    """Return an id for a record: short, since it becomes part of a socket's path."""
    return secrets.token_hex(6)


def process_started(pid: int) -> float | None:
    """Return when a process started (seconds since the epoch), None if there is none."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.Error:
        return None


def private_folder(folder: Path) -> Path:
    """Create a folder that only the user can enter, and return it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def write_private(path: Path, text: str) -> None:
    """Write a file that only the user can read, whole or not at all."""
    private_folder(path.parent)
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
    """Take a record back; nothing happens if it is gone already."""
    (folder / f"{record_id}{_SUFFIX}").unlink(missing_ok=True)


def is_alive(record: Record | BridgeRecord) -> bool:
    """Tell whether the process that wrote the record still runs; for records of this machine."""
    started = process_started(record.pid)
    return started is not None and abs(started - record.started) < _START_TOLERANCE


def live_records(folder: Path) -> tuple[Record, ...]:
    """Return the records of live kernels on this machine, oldest first, and prune the others.

    A file that cannot be read as a record is left alone: a newer version may have written it. So
    is one that another user wrote, whose tools must not reach this user's assistant.
    """
    records = []
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            if not _is_mine(path):
                continue
            record = Record.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
        if record.host != socket.gethostname() or path.stem != record.id:
            continue
        if is_alive(record):
            records.append(record)
        else:
            forget(folder, record)
    return tuple(sorted(records, key=lambda record: (record.started, record.id)))


def read_bridge(path: Path) -> BridgeRecord | None:
    """Return the record of the user's background bridge, None if none runs."""
    try:
        record = BridgeRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return record if is_alive(record) else None


def forget(folder: Path, record: Record) -> None:
    """Remove a dead kernel's record and socket."""
    remove_record(folder, record.id)
    # Only ever a socket: what a record says must not be able to delete anything else.
    with contextlib.suppress(OSError):
        if record.socket is not None and Path(record.socket).is_socket():
            Path(record.socket).unlink(missing_ok=True)


def _is_mine(path: Path) -> bool:
    return sys.platform == "win32" or path.stat().st_uid == os.geteuid()


async def watch_records(folder: Path) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the live records now and again after each change in the folder; never ends.

    Also yields every few seconds without a change, for disks that send no events.

    Raises:
        SettingsError: The folder is not there and cannot be made.
    """
    from anyio import to_thread  # noqa: PLC0415 - not in the kernel, as below

    try:
        private_folder(folder)
    except OSError as error:
        raise SettingsError(
            f"The folder {folder} cannot be used: {error.strerror}. Set MCP_NOTEBOOK_HOME to a "
            "folder that you can write to, for the notebooks too."
        ) from None
    # The look at the folder may be slow (a network disk): not on the event loop.
    yield await to_thread.run_sync(live_records, folder)
    async for _ in _changes(folder):
        yield await to_thread.run_sync(live_records, folder)


async def _changes(folder: Path) -> AsyncIterator[object]:
    """Yield after each change and every few seconds."""
    from watchfiles import awatch  # noqa: PLC0415 - the kernel reads no records and pays nothing

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
        except (OSError, RuntimeError) as error:  # shared machines run out of inotify watches
            if polling:
                raise
            logger.warning("%s cannot be watched (%s): looking at it instead", folder, error)
