"""``%mcp record``: the notebook's recording, and the insertion of a call as a cell.

Runs on the kernel's main thread, inside the user's cell. Left to others: the file (`call_recorder`)
and its cells (`call_cells`).
"""

import shlex
from collections.abc import Collection
from pathlib import Path

from IPython.core.error import UsageError

from mcp_notebook.errors import RecordingError
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile
from mcp_notebook.kernel.notebook.recording.call_cells import format_call
from mcp_notebook.kernel.notebook.recording.call_recorder import CallRecorder, find_free_name
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.wording import suggest

RECORD_OPTIONS = ("--append", "--here", "--stop")
"""The options of `%mcp record`."""
_MAX_DIGITS = 18
"""Digits of a call's number: Python refuses to parse very long ones."""


class Recording:
    """The recording of a notebook's calls, which can be started and stopped.

    Args:
        log: The log of calls.
        notebook_file: The notebook's file, for the recording's name.
    """

    def __init__(self, log: CallLog, notebook_file: NotebookFile) -> None:
        self._log = log
        self._notebook_file = notebook_file
        self._recorder: CallRecorder | None = None

    def control(self, name: str | None, options: Collection[str]) -> str:
        """Start, describe or stop the recording, and return a message.

        Args:
            name: The file; None if the line has none.
            options: The options on the line.

        Raises:
            UsageError: The options contradict each other.
            RecordingError: The file cannot be used.
        """
        if "--stop" in options:
            if name or len(options) > 1:
                raise UsageError("`%mcp record --stop` takes no other arguments.")
            return self.stop()
        if self._recorder is not None:
            if not name:
                return self._recorder.describe()
            raise RecordingError(
                f"Calls are already being recorded to {self._recorder.path}. Stop that first: "
                "`%mcp record --stop`."
            )
        if "--append" in options and not name:
            raise UsageError("Append to which file? Write `%mcp record --append FILE`.")
        path = _make_path(name) if name else find_free_name(self._make_name())
        self._start(path, appends="--append" in options)
        return (
            f"From now on, each call becomes a cell of {path}, with its arguments and its result. "
            "`%mcp record --stop` stops the recording."
        )

    def stop(self) -> str:
        """Stop the recording, and return a message."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return "No calls are being recorded. `%mcp record` starts a recording."
        self._log.unsubscribe(recorder)
        is_whole = recorder.close()
        text = f"Recorded {recorder.format_count()} in {recorder.path}."
        if is_whole:
            return text
        return f"{text} {recorder.describe_problem() or 'The last ones are still being written.'}"

    def flush(self) -> None:
        """Wait a few seconds at most until the calls so far are in the file."""
        if self._recorder is not None:
            self._recorder.flush()

    def describe(self) -> list[str]:
        """Return a sentence about the recording; empty if there is none."""
        return [] if self._recorder is None else [self._recorder.describe()]

    def _start(self, path: Path, *, appends: bool) -> None:
        self._recorder = CallRecorder(path, self._notebook_name, appends=appends)
        self._log.subscribe(self._recorder)

    def _make_name(self) -> Path:
        return Path.cwd() / f"{Path(self._notebook_name).stem or 'notebook'}-calls.ipynb"

    @property
    def _notebook_name(self) -> str:
        path = self._notebook_file.path
        return path.name if path else ""


def read_record_line(line: str) -> tuple[str | None, set[str]]:
    """Return the file or number on the line of ``%mcp record``, or None, and the options.

    Raises:
        UsageError: The line is invalid.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}: close the quote in `%mcp record {line}`.") from None
    names = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("-")]
    for option in options:
        if option not in RECORD_OPTIONS:
            meant = suggest(option, RECORD_OPTIONS)
            hint = f"Did you mean `{meant}`?" if meant else f"It has {', '.join(RECORD_OPTIONS)}."
            raise UsageError(f"`%mcp record` has no option `{option}`. {hint}")
    if len(names) > 1:
        raise UsageError(
            f"`%mcp record` takes one file, not {len(names)}: {', '.join(names)}. Put a name with "
            "spaces in quotes."
        )
    return (names[0] if names else None), set(options)


def insert_call(log: CallLog, registry: ToolRegistry, text: str) -> str:
    """Return the code of the cell that ``%mcp record --here N`` inserts into the notebook.

    Raises:
        UsageError: There is no such call, or its arguments were too large to be kept.
    """
    last = log.list_calls()[-1:]
    if not text:
        if not last:
            raise UsageError("No tool has been called yet, so there is no call to insert.")
        call = last[0]
    else:
        match = log.find(int(text)) if text.isdecimal() and len(text) <= _MAX_DIGITS else None
        if match is None:
            newest = f" The last one is {last[0].number}." if last else ""
            raise UsageError(
                f"The log has no call {text[:_MAX_DIGITS]}.{newest} `%mcp log` lists its calls; it "
                "keeps as many as the limit max_logged_calls allows."
            )
        call = match
    if not call.is_complete and any(
        isinstance(value, str) and value.startswith("<large ") for value in call.arguments.values()
    ):
        raise UsageError(
            f"The arguments of call {call.number} were too large to be kept. `%mcp record` keeps "
            "all arguments of future calls."
        )
    tool = registry.get(call.tool)
    return format_call(call.tool, call.arguments, tool.function_schema if tool else None)


def _make_path(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix != ".ipynb":
        path = path.with_name(f"{path.name}.ipynb")
    return Path.cwd() / path
