"""The record that a live kernel publishes so that bridges find it: write, read, watch, prune.

A record is a small JSON file (mode 0600) in a folder that is found from HOME alone. The kernel
writes and removes its own (`kernel.extension`); bridges read and watch them, and remove those whose
process is gone. No process is contacted here: that is `bridge.links`' business.
"""

import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

_SUFFIX = ".json"
_RESCAN_MS = 5_000
"""Milliseconds between looks at the folder where the system sends no file events (network disks)."""


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
    return started is not None and abs(started - record.started) < 1.0


def live_records(folder: Path) -> tuple[Record, ...]:
    """Return the records of live kernels on this machine, oldest first, and prune the others.

    A file that cannot be read as a record is left alone: a newer version may have written it.
    """
    records = []
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            record = Record.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
        if record.host != socket.gethostname():
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
    if record.socket is not None:
        Path(record.socket).unlink(missing_ok=True)


async def watch_records(folder: Path) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the live records now, and again after each change in the folder; never ends."""
    from watchfiles import awatch  # noqa: PLC0415 - the kernel reads no records and pays nothing

    private_folder(folder)
    yield live_records(folder)
    async for _ in awatch(
        folder,
        watch_filter=lambda _, path: path.endswith(_SUFFIX),
        debounce=50,
        step=10,
        rust_timeout=_RESCAN_MS,
        yield_on_timeout=True,
        recursive=False,
    ):
        yield live_records(folder)
