"""The records that live kernels publish so that bridges find them: write, read, watch, prune.

A record is a small JSON file (mode 0600) in a folder that depends on HOME only. A kernel writes and
removes its own record. Bridges read and watch all records, and remove those of dead processes.
Whatever else is in that folder is ignored. Runs in every process; contacts none.
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

import psutil
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from mcp_notebook.discovery.departures import Departure, Line, write_departure
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.private_files import (
    is_own,
    make_private_folder,
    read_private,
    write_private,
)
from mcp_notebook.text.wording import count

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
_MAX_REPORTS = 20
"""Ignored files that one scan of the folder names in the log."""

_Pid = Annotated[int, Field(gt=0, lt=2**32)]
_Path = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]
"""A path that the system can be asked for."""


class Process(BaseModel):
    """A process that files belong to; it may have ended since."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: _Pid
    started: FiniteFloat
    """When the process started, in seconds since the epoch: pids are reused."""


class Record(Process):
    """What bridges need to know about a live kernel; readable by the user only."""

    id: str
    """Unique for each load of the extension; also the file's name."""
    host: str
    """Name of the machine: several machines may share a home folder."""
    version: str
    """The kernel's version of mcp-notebook."""
    protocol: int
    """The kernel's version of the link protocol."""
    notebook: _Path | None = None
    """Path of the notebook, if the kernel knows it."""
    first_notebook: _Path | None = None
    """Its path when the kernel started, which a restarted kernel is given again."""
    name: Line
    """Short name of the notebook, for messages and for the full names of tools."""
    jupyter_id: Line | None = None
    """The id by which a Jupyter Server knows the kernel; other frontends choose one, too."""
    owner: Literal["user", "bridge"] = "user"
    """Who started the kernel. A headless kernel is served only by the bridge that started it."""
    socket: _Path | None = None
    """Path of the Unix socket; None if the kernel listens on TCP."""
    port: Annotated[int, Field(gt=0, lt=2**16)] | None = None
    """Port on 127.0.0.1, on systems without Unix sockets."""
    token: str | None = None
    """The token that connections over TCP have to present."""


class BridgeRecord(Process):
    """What notebooks need to know about the user's background bridge (``bridge.json``)."""

    version: str
    url: str
    """URL of the endpoint, including ``/mcp``; the token is in a file of its own."""
    notices: tuple[str, ...] = ()
    """What whoever starts it has to know, such as that the token is a new one."""


def read_start_time(pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None if it does not exist."""
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
    write_private(path, record.model_dump_json(indent=1))
    return path


def remove_record(folder: Path, record_id: str) -> None:
    """Remove a record. Does nothing if it does not exist."""
    (folder / f"{record_id}{_SUFFIX}").unlink(missing_ok=True)


def is_alive(process: Process) -> bool:
    """Return whether a process of this machine, which a record names, still runs."""
    started = read_start_time(process.pid)
    return started is not None and abs(started - process.started) < _START_TOLERANCE


class IgnoredFiles:
    """Files among the records that are not records; the log names each once, not at every scan.

    Belongs to whoever scans the folder: one command, or the task that watches for a bridge.
    """

    def __init__(self) -> None:
        self._paths: frozenset[Path] = frozenset()

    def update(self, problems: dict[Path, str]) -> None:
        """Take the files that a scan has ignored, each with the reason, and log the new ones."""
        new = [path for path in problems if path not in self._paths]
        for path in new[:_MAX_REPORTS]:
            logger.warning("Ignoring %r, not a valid record: %s.", str(path), problems[path])
        if len(new) > _MAX_REPORTS:
            number = len(new) - _MAX_REPORTS
            logger.warning("Ignoring %s that are not valid records.", count(number, "more file"))
        self._paths = frozenset(problems)


def list_live_records(folder: Path, ignored: IgnoredFiles | None = None) -> tuple[Record, ...]:
    """Return the records of live kernels on this machine, oldest first, and prune dead ones.

    Args:
        folder: Of the records.
        ignored: Takes the files that are no records; None to ignore them silently.
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
    """Return the user's records of all machines, also of dead kernels, oldest first.

    Whatever is not a valid record is ignored, because a newer version may have written it, and so
    are the files of other users, whose tools must not reach this user's assistant.

    Args:
        folder: Of the records.
        ignored: Takes the files that are no records; None to ignore them silently.
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
        ValueError: It holds no record, or one that belongs in another file.
    """
    record = Record.model_validate_json(read_private(path))
    if path.stem != record.id:
        raise ValueError(f"its `id` is {record.id!r}, which does not match the file name")
    return record


def _describe_problem(error: OSError | ValueError) -> str:
    """Return what is wrong with a file, as the end of a sentence."""
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_input=False)[0]
        name = f"`{problem['loc'][0]}`" if problem["loc"] else "it"
        return _describe_member(name, problem["type"], problem["msg"])
    if getattr(error, "errno", None) == errno.ELOOP:  # links are not followed
        return "it is a symbolic link"
    reason = getattr(error, "strerror", None)
    return f"it cannot be read ({reason})" if reason else str(error)


def _describe_member(name: str, kind: str, message: str) -> str:
    """Return what pydantic does not accept, by its type of the error."""
    if kind == "json_invalid":
        return f"it is not valid JSON ({message.partition(': ')[2]})"
    texts = {
        "missing": "is missing",
        "string_pattern_mismatch": "contains a NUL character",
        "string_too_short": "is empty",
    }
    # The other messages are like "Input should be greater than 0".
    return f"{name} {texts.get(kind) or message.partition(' ')[2]}"


def read_bridge(path: Path) -> BridgeRecord | None:
    """Return the record of the user's background bridge, or None if it does not run."""
    try:
        record = BridgeRecord.model_validate_json(read_private(path))
    except (OSError, ValidationError):
        return None
    return record if is_alive(record) else None


def make_socket_name(record_id: str) -> str:
    """Return the name of the Unix socket of a record's kernel."""
    return f"{record_id}.sock"


def forget_record(folder: Path, record: Record, reason: str | None = None) -> None:
    """Remove a record and its socket, and leave a note for those who look for the notebook.

    Does nothing if they do not exist or cannot be removed.

    Args:
        folder: Of the records.
        record: Of the kernel that leaves.
        reason: Why it leaves, as a sentence; None if it crashed or was killed.
    """
    if record.owner == "user":  # who started a headless kernel knows what became of it
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
    # A record must not be able to remove any other file, or the socket of another kernel.
    path = Path(record.socket)
    with contextlib.suppress(OSError):
        status = path.lstat()
        is_its_own = path.name == make_socket_name(record.id) and is_own(status)
        if is_its_own and stat.S_ISSOCK(status.st_mode):
            path.unlink()


def _prune(folder: Path, record: Record) -> None:
    """Forget a dead kernel, unless its successor has published a record under its id meanwhile."""
    with contextlib.suppress(OSError, ValueError):
        if _read_record(folder / f"{record.id}{_SUFFIX}") == record:
            forget_record(folder, record)


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
    ignored = IgnoredFiles()
    # In a thread: reading the folder may be slow on a network disk.
    yield await to_thread.run_sync(list_live_records, folder, ignored)
    async for _ in _changes(folder):
        yield await to_thread.run_sync(list_live_records, folder, ignored)


async def _changes(folder: Path) -> AsyncIterator[object]:
    """Yield after each change, and every few seconds, whatever happens to the folder; never end."""
    from anyio import sleep  # noqa: PLC0415 - kernels do not watch, and import nothing for it
    from watchfiles import awatch  # noqa: PLC0415

    rescan_at = monotonic() + _RESCAN
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
                    rescan_at = monotonic() + _RESCAN
        # `awatch` puts into a group what stops it once it runs: a name of a file that is not UTF-8.
        except (OSError, RuntimeError, ExceptionGroup) as error:
            # Inotify watches run out on shared machines. A folder that was removed comes back with
            # the next kernel.
            if polling is None and folder.is_dir():  # noqa: ASYNC240 - once
                reasons = error.exceptions if isinstance(error, ExceptionGroup) else [error]
                logger.warning("%s cannot be watched (%s), so it is polled", folder, reasons[0])
                polling = True
            else:
                await sleep(_RESCAN)
                yield None
