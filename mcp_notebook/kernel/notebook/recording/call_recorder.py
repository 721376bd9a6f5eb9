"""``%mcp record``: each call becomes a cell of a notebook file, which is valid at every moment.

Runs in the user's kernel. Calls are handed over on any thread; one thread of the recorder writes
the file. It writes a whole new file each time and renames it, so that neither a kill nor a full
disk leaves half a notebook; calls that come meanwhile go into the next one together.
"""

import json
import logging
import os
import secrets
import shlex
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from mcp_notebook._version import __version__
from mcp_notebook.content import Result
from mcp_notebook.errors import RecordingError
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.recording.call_cells import (
    KEY,
    NBFORMAT,
    Cell,
    RecordedCall,
    format_time,
    make_call_cell,
)
from mcp_notebook.text.wording import count

logger = logging.getLogger(__name__)

MAX_WAITING = 64 * 2**20
"""Bytes of cells that wait for a slow disk; calls that come then are left out, and counted."""
RETRY = 5.0
"""Seconds until a file that could not be written is tried again."""
CLOSE_LIMIT = 5.0
"""Seconds that the kernel waits for the last cells when the recording ends."""
_PAUSE = 10
"""After a write comes a pause of so many times what it took: copies must not keep a disk busy."""
_HEAD = b'{\n"cells": [\n'
_BETWEEN = b",\n"


class CallRecorder:
    """Records the calls of one kernel into one file; observes the log of calls.

    Args:
        path: The file.
        notebook: The name of the notebook whose calls these are.
        appends: Whether to add to a recording that is there already.

    Raises:
        RecordingError: The file exists already, is not a recording, or cannot be written.
    """

    def __init__(self, path: Path, notebook: str, *, appends: bool = False) -> None:
        self.path = path
        """Where it records."""
        self.count = 0
        """Calls that were recorded so far; the last ones may not be in the file yet."""
        self.missed = 0
        """Calls that were left out: the disk was full or too slow."""
        self.problem: str | None = None
        """Why the file cannot be written at the moment."""
        self._metadata = _encode(
            {
                "kernelspec": {
                    "display_name": "Python 3",
                    "language": "python",
                    "name": "python3",
                },
                "language_info": {"name": "python"},
                KEY: {"records": notebook, "version": __version__},
            }
        )
        self._tail = b'\n],\n"metadata": %s,\n"nbformat": %d,\n"nbformat_minor": %d\n}\n' % (
            self._metadata,
            NBFORMAT["nbformat"],
            NBFORMAT["nbformat_minor"],
        )
        self._identity: tuple[int, int, int] | None = None
        """What identifies the file as this recorder left it: inode, size, time of change."""
        self._lock = threading.Condition()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._writing: list[bytes] = []
        """What is being written; it waits again if that fails."""
        self._is_wanted = False
        self._is_closed = False
        self._begin(notebook, appends=appends)
        self._thread = threading.Thread(
            target=self._write_cells, name="mcp-notebook recorder", daemon=True
        )
        self._thread.start()

    # -- observes the log of calls (any thread) ----------------------------------------------------

    def call_came(self, call: LoggedCall) -> None:
        """Do nothing: a call is recorded when it has ended."""

    def call_moved(self, call: LoggedCall) -> None:
        """Do nothing: a call is recorded when it has ended."""

    def call_ended(self, call: LoggedCall, result: Result) -> None:
        """Record a call."""
        with self._lock:
            if self._is_closed:
                return
            if self._waiting_bytes > MAX_WAITING:
                self.missed += 1
                return
        cell = _encode(_make_cell(call, result))
        with self._lock:
            self.count += 1
            self._waiting.append(cell)
            self._waiting_bytes += len(cell)
            self._lock.notify_all()

    # -- for the notebook --------------------------------------------------------------------------

    def flush(self, seconds: float = CLOSE_LIMIT) -> bool:
        """Wait until all calls so far are in the file, and return whether they are."""
        with self._lock:
            self._is_wanted = True
            self._lock.notify_all()
            return self._lock.wait_for(lambda: not self._waiting and not self._writing, seconds)

    def close(self) -> bool:
        """Record what has ended until now and nothing more; return whether all of it is written."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        self._thread.join(CLOSE_LIMIT)
        with self._lock:
            return not self._waiting and not self._writing

    def describe(self) -> str:
        """Say what is recorded, and what is wrong with it."""
        text = f"Recording calls to {self.path}: {self.format_count()} so far."
        return f"{text} {self.describe_problem()}".rstrip()

    def describe_problem(self) -> str:
        """Say what is wrong with the file; "" if nothing is."""
        texts = []
        if self.problem:
            with self._lock:
                waiting = count(len(self._waiting) + len(self._writing), "call")
            texts.append(
                f"It cannot be written ({self.problem}), and lacks {waiting}. Make room for it, or "
                f"make it writable; it is tried again every {RETRY:.0f} s."
            )
        if self.missed:
            texts.append(f"Left out, as the disk was too slow: {count(self.missed, 'call')}.")
        return " ".join(texts)

    def format_count(self) -> str:
        """Return how many calls were recorded so far, with the noun."""
        return count(self.count, "call")

    # -- the file ----------------------------------------------------------------------------------

    def _begin(self, notebook: str, *, appends: bool) -> None:
        """Make the file, or check the one that is there.

        Raises:
            RecordingError: That is not possible.
        """
        try:
            if appends and self.path.exists():
                self.path = self.path.resolve()  # a link to a recording stays one
                self._read_cells()
                self._identity = None  # the first write takes it over in our own form
                return
            # Only where there is none: somebody's notebook must not be lost.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_HEAD + _encode(_make_title(notebook)) + self._tail)
            self._identity = _identify(self.path)
        except FileExistsError:
            raise RecordingError(
                f"{self.path} is there already. Name another file, or add to this recording with "
                f"`%mcp record --append {shlex.quote(str(self.path))}`."
            ) from None
        except OSError as error:
            raise RecordingError(
                f"{self.path} cannot be written: {error.strerror}. Name a file in another folder."
            ) from None

    def _read_cells(self) -> list[Cell]:
        """Return the cells of the file.

        Raises:
            RecordingError: It is not a recording; it may be a notebook that must not be lost.
            OSError: It cannot be read.
        """
        try:
            notebook = json.loads(self.path.read_bytes())
            cells = notebook["cells"]
            is_recording = notebook["nbformat"] == NBFORMAT["nbformat"]
            is_recording = is_recording and "records" in notebook["metadata"][KEY]
        except (ValueError, TypeError, KeyError):
            is_recording = False
        if not is_recording or not isinstance(cells, list):
            raise RecordingError(
                f"{self.path} is not a recording of calls, so none can be added to it. Name "
                "another file."
            )
        return cells

    def _write_cells(self) -> None:
        """Write what waits until the recorder is closed; runs on the recorder's thread."""
        pause = 0.0
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._is_closed or self._is_wanted, pause)
                self._lock.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                cells, self._waiting, self._waiting_bytes = self._waiting, [], 0
                self._is_wanted = False
                self._writing = cells
            began = monotonic()
            problem = self._try_to_append(cells)
            pause = RETRY if problem else (monotonic() - began) * _PAUSE
            with self._lock:
                self._writing = []
                self.problem = problem
                if problem:
                    self._waiting = cells + self._waiting
                    self._waiting_bytes = sum(map(len, self._waiting))
                self._lock.notify_all()
                if problem and self._is_closed:
                    logger.error("%d calls are not in %s: %s", len(cells), self.path, problem)
                    return

    def _try_to_append(self, cells: list[bytes]) -> str | None:
        """Write cells to the file; return why that is not possible."""
        try:
            self._append(cells)
        except OSError as error:
            return error.strerror or str(error)
        except RecordingError:  # somebody wrote something else there: leave it alone
            self.path = find_free_name(self.path)
            self._identity = None
            return self._try_to_append(cells)
        except Exception as error:
            logger.exception("calls could not be recorded")
            return str(error)
        return None

    def _append(self, cells: list[bytes]) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "r+b") as file:
                if self._identity is not None and _identify(self.path) == self._identity:
                    with self.path.open("rb") as source:
                        shutil.copyfileobj(source, file, 2**20)
                    file.seek(-len(self._tail), os.SEEK_END)
                    file.truncate()
                    file.write(_BETWEEN)
                else:  # saved by somebody else, or new, or gone
                    file.write(_HEAD)
                    before = self._read_cells() if self.path.exists() else [_make_title("")]
                    file.writelines(_encode(cell) + _BETWEEN for cell in before)
                file.write(_BETWEEN.join(cells))
                file.write(self._tail)
            Path(temporary).replace(self.path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
        self._identity = _identify(self.path)


def _make_cell(call: LoggedCall, result: Result) -> Cell:
    recorded = RecordedCall(
        tool=call.tool,
        arguments=dict(call.arguments),
        is_complete=call.is_complete,
        client=call.client_label,
        time=format_time(call.came),
        state=str(call.state),
        never_ran=call.never_ran,
        queue_seconds=round(call.queue_seconds, 3),
        run_seconds=round(call.run_seconds, 3),
        source_hash=call.source_hash,
        version=__version__,
    )
    return make_call_cell(recorded, result, _make_id(), call.function_schema)


def _make_title(notebook: str) -> Cell:
    of = f" of {notebook}" if notebook else ""
    text = (
        f"# Calls{of}\n\nRecorded by mcp-notebook: each cell is a call of a tool by an assistant, "
        "with what the assistant got. In the kernel of the tools, the cells make the calls again."
    )
    return {"cell_type": "markdown", "id": _make_id(), "metadata": {}, "source": text}


def _make_id() -> str:
    return secrets.token_hex(4)


def _encode(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.encode(errors="replace")  # nbformat's files are UTF-8


def _identify(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def find_free_name(path: Path) -> Path:
    """Return the path, or one like it with a number, where no file is."""
    other, number = path, 1
    while other.exists():
        number += 1
        other = path.with_stem(f"{path.stem}-{number}")
    return other
