"""Formats calls for the author: the table of ``%mcp log``, and the counts of ``%mcp status``.

Runs on any thread. Pure: log entries go in, MIME bundles and texts come out. All text in an entry
is untrusted and escaped.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import escape

from IPython.core.error import UsageError

from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import CallCounts, LoggedCall
from mcp_notebook.kernel.notebook.recording.call_cells import describe_call
from mcp_notebook.text.wording import count, format_size, make_printable

DEFAULT_NUMBER = 20
"""Calls that ``%mcp log`` shows by default."""
OPTIONS = ("-n", "--errors")
MAX_CALL = 120
"""Characters of a call in the table."""
_MAX_ERROR = 120
"""Characters of an error's first line."""
_MAX_NAMES = 5
"""Tools or clients in a line of counts."""
_TITLES = ("no.", "received", "client", "call", "state", "waited", "ran", "result")
_LEFT = "style='text-align:left;vertical-align:top'"  # notebooks align cells to the right
_SHORT = "style='text-align:left;vertical-align:top;white-space:nowrap'"
_KILO, _MINUTE, _HOUR = 1_000, 60, 3_600


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """Which calls to show."""

    tool: str | None = None
    """The tool; None: all tools."""
    most: int = DEFAULT_NUMBER
    """The number of calls, the latest ones."""
    errors: bool = False
    """Whether to show only calls that failed or were stopped."""

    def select(self, calls: Sequence[LoggedCall]) -> list[LoggedCall]:
        """Return all matching calls, without the limit `most`."""
        return [
            call
            for call in calls
            if self.tool in (None, call.tool) and (call.has_failed or not self.errors)
        ]


def read_query(line: str) -> LogQuery:
    """Parse the arguments of ``%mcp log``.

    Raises:
        UsageError: They are invalid.
    """
    tool, most, errors = None, DEFAULT_NUMBER, False
    words = iter(line.split())
    for word in words:
        if word == "--errors":
            errors = True
        elif word.startswith("-n"):
            number = word.removeprefix("-n").removeprefix("=") or next(words, "")
            if not (number.isdecimal() and int(number)):
                raise UsageError("How many calls? Write a number after `-n`: `%mcp log -n 50`.")
            most = int(number)
        elif word.startswith("-"):
            raise UsageError(
                f"`%mcp log` has no option `{word}`. It has `-n 20`, the number of calls to show, "
                "and `--errors`."
            )
        elif tool is not None:
            raise UsageError(f"`%mcp log` shows one tool or all: write `{tool}` or `{word}`.")
        else:
            tool = word
    return LogQuery(tool=tool, most=most, errors=errors)


def build_call_table(calls: Sequence[LoggedCall], note: str = "") -> dict[str, str]:
    """Return the MIME bundle that lists calls, one per line.

    Args:
        calls: In the order of the lines.
        note: A line below the table.
    """
    rows = [(*_list_cells(call), _describe_answer(call)) for call in calls]
    widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (_TITLES, *rows)
    ]
    text = "\n".join([*lines, *filter(None, [note])])
    return {
        "text/html": make_printable(_render_html(calls, note)),
        "text/plain": make_printable(text),
    }


def _list_cells(call: LoggedCall) -> tuple[str, ...]:
    return (
        str(call.number),
        format_time(call.came),
        _clean(call.client_label),
        describe_call(call.tool, call.arguments, MAX_CALL),
        describe_state(call),
        format_seconds(call.queue_seconds),
        format_seconds(call.run_seconds) if call.run_seconds and not call.is_cached else "",
    )


def _render_html(calls: Sequence[LoggedCall], note: str) -> str:
    head = "".join(f"<th {_LEFT}>{title}</th>" for title in _TITLES)
    body = "".join(f"<tr>{''.join(_render_cells(call))}</tr>" for call in calls)
    below = f"<div style='opacity:.7'>{escape(note)}</div>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _render_cells(call: LoggedCall) -> Iterator[str]:
    for title, cell in zip(_TITLES, map(escape, _list_cells(call)), strict=False):
        if title == "call":
            yield f"<td {_LEFT}><code>{cell}</code></td>"
        else:
            yield f"<td {_SHORT}>{cell}</td>"
    answer = escape(_describe_answer(call))
    if call.error is not None:
        answer = f"<span style='color:#f37726'>&#9888;</span> {answer}"
        if call.error.strip() != _find_first_line(call.error):
            error = f"<pre style='white-space:pre-wrap'>{escape(call.error)}</pre>"
            answer = f"<details><summary>{answer}</summary>{error}</details>"
    yield f"<td {_LEFT}>{answer}</td>"


# -- the parts of a line ---------------------------------------------------------------------------


def describe_state(call: LoggedCall) -> str:
    """Return the state of a call, or how it ended."""
    if call.task_id is not None:
        return f"{call.state!s}, a task"
    return f"{call.state!s}, cached" if call.is_cached else str(call.state)


def format_seconds(seconds: float) -> str:
    """Return a duration in a suitable unit: ``12 ms``, ``3.4 s``, ``5 min``, ``2.1 h``."""
    if seconds < 1:
        return f"{seconds * _KILO:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


def format_time(seconds: float) -> str:
    """Return a local time, with the date unless it is today.

    Args:
        seconds: Since the epoch.
    """
    moment = datetime.fromtimestamp(seconds)  # noqa: DTZ006 - the author's own clock
    is_today = moment.date() == date.today()  # noqa: DTZ011
    return f"{moment:%H:%M:%S}" if is_today else f"{moment:%Y-%m-%d %H:%M:%S}"


def _describe_answer(call: LoggedCall) -> str:
    """Return the error's first line, or the kinds and the size of the result."""
    if call.error is not None:
        line = _clean(_find_first_line(call.error))
        return line if len(line) <= _MAX_ERROR else f"{line[:_MAX_ERROR]}..."
    if call.state is not CallState.DONE:
        return ""
    kinds = _clean(", ".join(call.kinds))
    return f"{kinds}: {format_size(call.size)}" if call.kinds else "nothing"


def _find_first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _clean(text: str) -> str:
    return " ".join(make_printable(text).split())


# -- counts ----------------------------------------------------------------------------------------


def describe_counts(counts: CallCounts) -> Iterator[str]:
    """Yield the lines of ``%mcp status`` about ended calls."""
    if not counts.calls:
        return
    failures = f", {counts.failures:,} failed" if counts.failures else ""
    tools = _list_counts(counts.tools, counts.tool_failures)
    yield f"{count(counts.calls, 'call')}{failures} (`%mcp log`): {tools}"
    yield f"by {_list_counts(counts.clients, Counter())}"


def _list_counts(counter: Counter[str], failures: Counter[str]) -> str:
    """Return the most frequent names, each with its number of calls and failures."""
    names = []
    for name, number in counter.most_common(_MAX_NAMES):
        failed = f", {failures[name]:,} failed" if failures[name] else ""
        names.append(f"{_clean(name)} ({number:,}{failed})")
    others = len(counter) - len(names)
    return ", ".join([*names, *([f"and {others:,} more"] if others else [])])
