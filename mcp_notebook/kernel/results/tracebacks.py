"""An exception as text for a model: its type, its message, and the lines of the user's own code.

Runs in the user's kernel, on the thread of the call. Frames of this package and of its callers
(asyncio, IPython, ipykernel, pydantic) are left out. Of a library that the user's code called, only
the frame that raised is named. Size is limited, and exceptions whose own methods fail are safe.
A client may get less than the author: `ErrorStyle` says how much.
"""

import linecache
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeAlias

from msgspec import Struct

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import find_library_folder
from mcp_notebook.kernel.safe.text import clean_text, cut_text, describe_error, get_type_name
from mcp_notebook.settings.settings import ErrorDetail

CodeName: TypeAlias = Callable[[str], tuple[str, str] | None]
"""IPython's ``shell.compile.format_code_name``: a cell's file name to ("Cell", "In[3]")."""

MAX_FRAMES = 20
MAX_MEMBERS = 5
"""Maximum exceptions of a group that are described."""
MAX_MESSAGE = 5_000
MAX_DETAILS = 20_000
"""Maximum characters of an error that only the author sees."""
_INDENT = "    "
_OURS = "mcp_notebook"
_REMOTE = ("RemoteTraceback", "_RemoteTraceback")
"""Exceptions that hold the traceback of another process: ours, and that of Python's pools."""
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


@dataclass(frozen=True)
class ErrorText(Text):
    """An error as the client gets it, with the whole of it for the author."""

    details: str = field(default="", kw_only=True, repr=False)
    """The whole error; never sent to clients."""


class ErrorStyle(Struct, frozen=True):
    """How much of an exception a client gets. A `CallError`, such as `ToolError`, is always whole.

    Args:
        detail: How much.
        masked: The sentence in place of a masked error.
    """

    detail: ErrorDetail = "full"
    masked: str = ""

    def explain(self, error: BaseException, code_name: CodeName | None = None) -> Text:
        """Return the text about what a call raised.

        Args:
            error: What it raised.
            code_name: As for `describe_exception`.
        """
        if self.detail == "full" or isinstance(error, CallError):
            return Text(describe_exception(error, code_name))
        details = guard(
            lambda: describe_exception(error, code_name), recover=lambda _: get_type_name(error)
        )
        text = self.masked if self.detail == "masked" else describe_briefly(error)
        return ErrorText(text, details=cut_text(details, MAX_DETAILS))


def find_details(result: Result) -> str | None:
    """Return the whole error of a result that has only a part of it for the client, or None."""
    return next((item.details for item in result.content if isinstance(item, ErrorText)), None)


def reveal_details(result: Result) -> Result:
    """Return a result for the author, with the whole error."""
    if not result.is_error or find_details(result) is None:
        return result
    content = [
        Text(item.details) if isinstance(item, ErrorText) else item for item in result.content
    ]
    return replace(result, content=content)


def describe_exception(error: BaseException, code_name: CodeName | None = None) -> str:
    """Describe why a call failed.

    Args:
        error: What the tool raised; a `CallError` needs no traceback.
        code_name: Returns the name of a cell by its file name; None: use file names.
    """
    if isinstance(error, CallError):
        return clean_text(guard(str, error)) or type(error).__name__
    report = _Report(code_name)
    parts = [report.describe(error)]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if type(cause).__name__ in _REMOTE and cause is not None:
        # Not a cause, but the traceback of this error in the process that raised it.
        parts = ["\n".join([parts[0], *report.describe_remote_frames(str(cause))])]
    elif cause is not None and not isinstance(cause, CallError):
        parts += ["It was raised while this was handled:", report.describe(cause)]
        if error.__cause__ is not None:
            parts[1] = "It was caused by:"
    return "\n\n".join(parts)


class _Line(Struct, frozen=True):
    """One frame of a traceback."""

    filename: str
    number: int
    function: str
    is_user_code: bool
    """Whether it is the user's own code."""

    def describe_place(self, code_name: CodeName | None) -> str:
        label = code_name(self.filename) if code_name is not None else None
        name = " ".join(label) if label is not None else self.filename
        if label is None and not self.is_user_code:
            name = _shorten_path(self.filename)
        place = f"{name}, line {self.number}"
        return place if self.function == "<module>" else f"{place}, in {self.function}"

    def read_source(self) -> str:
        return linecache.getline(self.filename, self.number).strip()


class _Report:
    def __init__(self, code_name: CodeName | None) -> None:
        self._code_name = code_name

    def describe(self, error: BaseException) -> str:
        lines = [self._describe_message(error), *self._describe_frames(error.__traceback__)]
        if isinstance(error, BaseExceptionGroup):
            lines += self._describe_members(error)
        return "\n".join(lines)

    def _describe_members(self, group: BaseExceptionGroup[BaseException]) -> Iterable[str]:
        for member in group.exceptions[:MAX_MEMBERS]:
            # A nested group is only named: nesting has no limit.
            nested = isinstance(member, BaseExceptionGroup)
            text = describe_error(member) if nested else self.describe(member)
            yield "- " + text.replace("\n", "\n  ")
        left_out = len(group.exceptions) - MAX_MEMBERS
        if left_out > 0:
            yield f"- ... and {left_out} more"

    def _describe_message(self, error: BaseException) -> str:
        # Includes SyntaxError's line and caret, notes, and a __str__ that fails.
        lines = guard(_format_last_lines, error, recover=lambda _: [describe_error(error)])
        text = clean_text("".join(lines)).strip().removeprefix("__main__.")
        if isinstance(error, SyntaxError) and error.filename and self._code_name is not None:
            label = self._code_name(error.filename)
            if label is not None:
                text = text.replace(f'File "{error.filename}"', " ".join(label))
        return cut_text(text, MAX_MESSAGE)

    def _describe_frames(self, trace: TracebackType | None) -> list[str]:
        return self._describe_lines("Traceback", _list_user_lines(trace))

    def describe_remote_frames(self, text: str) -> list[str]:
        """Return the lines that say where an error was raised in another process.

        Args:
            text: The traceback, as Python prints it there.
        """
        before, _, last = text.rpartition("Traceback (most recent call last):\n")
        frames = [
            _Line(name, int(number), function, _is_user_code(name))
            for name, number, function in _FRAME.findall(last)
        ]
        first = next((index for index, line in enumerate(frames) if line.is_user_code), len(frames))
        lines = self._describe_lines("Traceback on its worker", frames[first:])
        if earlier := before.strip('\n" '):
            lines += ["", "Before that, on its worker:", cut_text(clean_text(earlier), MAX_MESSAGE)]
        return lines

    def _describe_lines(self, title: str, lines: Sequence[_Line]) -> list[str]:
        if not lines:
            return []
        entries = []
        for line, times in _shorten(lines):
            if line is None:
                entries.append(f"{_INDENT}...")
                continue
            entries.append(f"  {line.describe_place(self._code_name)}")
            if line.is_user_code and (source := line.read_source()):
                entries.append(f"{_INDENT}{cut_text(clean_text(source), 500)}")
            if times > 1:
                entries.append(f"{_INDENT}[repeated {times - 1:,} more times]")
        return [f"{title} (most recent call last):", *entries]


def _list_user_lines(trace: TracebackType | None) -> list[_Line]:
    is_user_code: dict[str, bool] = {}  # an endless recursion has thousands of frames of few files
    lines = []
    for frame, number in traceback.walk_tb(trace):
        if not _is_own_frame(frame):
            name = frame.f_code.co_filename
            if name not in is_user_code:
                is_user_code[name] = _is_user_code(name)
            lines.append(_Line(name, number, frame.f_code.co_qualname, is_user_code[name]))
    first = next((index for index, line in enumerate(lines) if line.is_user_code), len(lines))
    return lines[first:]


def _shorten(lines: Sequence[_Line]) -> list[tuple[_Line | None, int]]:
    """Join repeated lines; omit inner library frames and the middle of long tracebacks."""
    entries: list[tuple[_Line | None, int]] = []
    for index, line in enumerate(lines):
        if not line.is_user_code and index < len(lines) - 1:
            if entries[-1][0] is not None:
                entries.append((None, 1))
        elif entries and entries[-1][0] == line:
            entries[-1] = (line, entries[-1][1] + 1)
        else:
            entries.append((line, 1))
    if len(entries) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        entries = [*entries[:half], (None, 1), *entries[-half:]]
    return entries


def _format_last_lines(error: BaseException) -> list[str]:
    report = traceback.TracebackException(type(error), error, None, max_group_depth=1, compact=True)
    return list(report.format_exception_only())


def _is_own_frame(frame: FrameType) -> bool:
    if "__tracebackhide__" in frame.f_code.co_varnames:  # as IPython leaves it out
        return True
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and name.partition(".")[0] == _OURS


def _is_user_code(filename: str) -> bool:
    return not filename.startswith("<frozen ") and find_library_folder(filename) is None


def _shorten_path(filename: str) -> str:
    folder = find_library_folder(filename)
    return filename if folder is None else str(Path(filename).relative_to(folder))


# -- without source lines and paths ----------------------------------------------------------------

_ROOT = r"(?:[A-Za-z]:[\\/]|\\\\|file:/+|~?/)"
_PATH = re.compile(
    rf"""(?P<quote>['"`]){_ROOT}[^'"`\n]+(?P=quote)"""
    rf"""|(?<![\w/\\.:~…-]){_ROOT}[^\s'"`<>|*?:;,()\[\]{{}}]+"""
)
_TRACEBACK = re.compile(
    r'^.*(?:Traceback \(most recent call last\)|File ".*", line \d+)', re.MULTILINE
)
"""The first line of a traceback in a message, as libraries for clusters put it there."""


def describe_briefly(error: BaseException) -> str:
    """Return an exception's type and message, without source lines and folders."""
    name = get_type_name(error)
    message = guard(_read_message, error, recover=lambda _: "")
    if found := _TRACEBACK.search(message):
        message = message[: found.start()]
    message = cut_text(clean_text(_PATH.sub(_shorten_match, message)).strip(), MAX_MESSAGE)
    return f"{name}: {message}" if message else name


def _read_message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.msg)  # its text names the file, and may have the line
    message = str(error)
    if isinstance(error, OSError):
        for path in (error.filename, error.filename2):
            message = _shorten_file_name(message, path)
    return message


def _shorten_file_name(message: str, path: Any) -> str:
    """Return the message of an OSError without the folders of its file, which may have any name."""
    form = repr(path)
    return message.replace(form, repr(_keep_name(form[1:-1]))) if isinstance(path, str) else message


def _shorten_match(match: re.Match[str]) -> str:
    quote = match["quote"] or ""
    return f"{quote}{_keep_name(match[0].strip(quote) if quote else match[0])}{quote}"


def _keep_name(path: str) -> str:
    """Return a path without its folders; a name alone stays as it is."""
    folders, separator, name = re.sub(r"[\\/]+", "/", path.rstrip("\\/")).rpartition("/")
    return f"…/{name}" if separator or folders else path
