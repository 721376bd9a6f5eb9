"""``%mcp record``: writes each call as a cell to a notebook file, which is valid at every moment.

Runs in the user's kernel. Calls are queued on any thread; one thread of the recorder writes the
file. It writes a complete new file each time and renames it, so that neither a kill nor a full disk
leaves half a notebook. Calls that end during a write are written together next time.
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
"""Bytes of cells in the queue; beyond that, calls are counted but not recorded."""
RETRY = 5.0
"""Seconds until a failed write is retried."""
CLOSE_LIMIT = 5.0
"""Seconds that the kernel waits for the last cells when the recording ends."""
_PAUSE = 10
"""Pause after a write, as a multiple of its duration: copies must not keep a disk busy."""
_HEAD = b'{\n"cells": [\n'
_BETWEEN = b",\n"


class CallRecorder:
    """Records the calls of one kernel into one file; observes the log of calls.

    Args:
        path: The file.
        notebook: The name of the notebook whose calls these are.
        appends: Whether to add to an existing recording.

    Raises:
        RecordingError: The file exists already, is not a recording, or cannot be written.
    """

    def __init__(self, path: Path, notebook: str, *, appends: bool = False) -> None:
        self.path = path
        """The file."""
        self.count = 0
        """Recorded calls; the last ones may not be in the file yet."""
        self.missed = 0
        """Calls that were not recorded because the disk was full or too slow."""
        self.problem: str | None = None
        """Why the file cannot be written now; None if it can."""
        self._metadata = encode(
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
        """Inode, size and modification time of the file after the last write."""
        self._lock = threading.Condition()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._writing: list[bytes] = []
        """Cells that are being written; they return to the queue if that fails."""
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
        cell = encode(make_cell(call, result))
        with self._lock:
            self.count += 1
            self._waiting.append(cell)
            self._waiting_bytes += len(cell)
            self._lock.notify_all()

    def call_left(self, number: int) -> None:
        """Do nothing: the call was recorded when it was answered."""

    # -- for the notebook --------------------------------------------------------------------------

    def flush(self, seconds: float = CLOSE_LIMIT) -> bool:
        """Wait until all calls so far are in the file, and return whether they are."""
        with self._lock:
            self._is_wanted = True
            self._lock.notify_all()
            return self._lock.wait_for(lambda: not self._waiting and not self._writing, seconds)

    def close(self) -> bool:
        """Stop recording, and return whether all calls so far are written."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        self._thread.join(CLOSE_LIMIT)
        with self._lock:
            return not self._waiting and not self._writing

    def describe(self) -> str:
        """Return a sentence on the recording, and its problems."""
        text = f"Recording calls to {self.path}: {self.format_count()} so far."
        return f"{text} {self.describe_problem()}".rstrip()

    def describe_problem(self) -> str:
        """Return the problems with the file; "" if there are none."""
        texts = []
        if self.problem:
            with self._lock:
                waiting = count(len(self._waiting) + len(self._writing), "call")
            texts.append(
                f"It cannot be written ({self.problem}), and lacks {waiting}. Free disk space, or "
                f"make it writable; writing is retried every {RETRY:.0f} s."
            )
        if self.missed:
            texts.append(f"Not recorded, as the disk was too slow: {count(self.missed, 'call')}.")
        return " ".join(texts)

    def format_count(self) -> str:
        """Return the number of recorded calls, with the noun."""
        return count(self.count, "call")

    # -- the file ----------------------------------------------------------------------------------

    def _begin(self, notebook: str, *, appends: bool) -> None:
        """Create the file, or check the existing one.

        Raises:
            RecordingError: It cannot be created, or is not a recording.
        """
        try:
            if appends and self.path.exists():
                self.path = self.path.resolve()  # a symbolic link stays one
                self._read_cells()
                self._identity = None  # the first write rewrites it in our format
                return
            # Never overwrite a file: it may be a notebook of the user.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_HEAD + encode(_make_title(notebook)) + self._tail)
            self._identity = _identify(self.path)
        except FileExistsError:
            raise RecordingError(
                f"{self.path} already exists. Name another file, or add to this recording with "
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
                f"{self.path} is not a recording of calls, so calls cannot be added to it. Name "
                "another file."
            )
        return cells

    def _write_cells(self) -> None:
        """Write queued cells until the recorder is closed; runs on the recorder's thread."""
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
        """Write cells to the file, and return the problem; None if it worked."""
        try:
            self._append(cells)
        except OSError as error:
            return error.strerror or str(error)
        except RecordingError:  # the file was replaced by something else: leave it alone
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
                else:  # changed by others, or new, or deleted
                    file.write(_HEAD)
                    before = self._read_cells() if self.path.exists() else [_make_title("")]
                    file.writelines(encode(cell) + _BETWEEN for cell in before)
                file.write(_BETWEEN.join(cells))
                file.write(self._tail)
            Path(temporary).replace(self.path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
        self._identity = _identify(self.path)


def make_cell(call: LoggedCall, result: Result) -> Cell:
    """Return a call as a cell of a notebook."""
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
        "with the result that the assistant got. In the kernel of the tools, the cells make the "
        "calls again."
    )
    return {"cell_type": "markdown", "id": _make_id(), "metadata": {}, "source": text}


def _make_id() -> str:
    return secrets.token_hex(4)


def encode(value: Any) -> bytes:
    """Return a cell, or a notebook's metadata, as JSON."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.encode(errors="replace")  # nbformat's files are UTF-8


def _identify(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def find_free_name(path: Path) -> Path:
    """Return the path, with a number if a file exists there."""
    other, number = path, 1
    while other.exists():
        number += 1
        other = path.with_stem(f"{path.stem}-{number}")
    return other
