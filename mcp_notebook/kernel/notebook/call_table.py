"""Formats calls for the author: the table of ``%mcp log``, and the counts of ``%mcp status``.

Runs on any thread. Pure: log entries go in, MIME bundles and texts come out. All text in an entry
is untrusted and escaped.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime

from IPython.core.error import UsageError
from msgspec import Struct

from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import CallCounts, LoggedCall
from mcp_notebook.kernel.notebook.call_cells import describe_call
from mcp_notebook.kernel.notebook.output_html import (
    CUT,
    Column,
    render_soft,
    render_table,
    render_text,
    write_table,
)
from mcp_notebook.text.wording import count, format_seconds, format_size, make_printable, shorten

DEFAULT_NUMBER = 20
"""Calls that ``%mcp log`` shows by default."""
OPTIONS = ("-n", "--errors")
MAX_CALL = 120
"""Characters of a call in the table."""
_MAX_ERROR = 120
"""Characters of an error's first line."""
_MAX_NAMES = 5
"""Tools or clients in a line of counts."""
_MAX_TEXT = 60
"""Characters of a call or a result in plain text."""
_COLUMNS = (
    Column("no.", 2),
    Column("received", 5),
    Column("client", 9),
    Column("call", 14, grows=True, is_code=True),
    Column("state", 7),
    Column("waited", 4),
    Column("ran", 4),
    Column("result", 11, grows=True),
)


class LogQuery(Struct, frozen=True, kw_only=True):
    """Which calls to show."""

    tool: str | None = None
    """The tool; None: all tools."""
    most: int = DEFAULT_NUMBER
    """The number of calls, the latest ones."""
    errors: bool = False
    """Whether to show only calls that failed."""

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
    rows = [[shorten(cell, _MAX_TEXT) for cell in _list_cells(call)] for call in calls]
    lines = write_table([column.title for column in _COLUMNS], rows)
    html = render_table(_COLUMNS, [list(_render_cells(call)) for call in calls])
    below = f"<div>{render_soft(render_text(note))}</div>" if note else ""
    return {
        "text/html": make_printable(html + below),
        "text/plain": make_printable("\n".join([*lines, *filter(None, [note])])),
    }


def _list_cells(call: LoggedCall) -> tuple[str, ...]:
    kind = "" if call.kind == "tool" else f"[{call.kind}] "
    return (
        str(call.number),
        format_time(call.came),
        _clean(call.client_label),
        kind + describe_call(call.tool, call.arguments, MAX_CALL),
        describe_state(call),
        format_seconds(call.queue_seconds),
        format_seconds(call.run_seconds) if call.run_seconds else "",
        _describe_answer(call),
    )


def _render_cells(call: LoggedCall) -> Iterator[str]:
    *cells, answer = map(render_text, _list_cells(call))
    yield from cells
    if call.error is not None and call.has_failed:
        answer = f"<span style='color:#f37726'>&#9888;</span> {answer}"
        if call.error.strip() != _find_first_line(call.error):
            error = f"<pre style='white-space:pre-wrap'>{render_text(call.error)}</pre>"
            answer = f"<details><summary style='{CUT}'>{answer}</summary>{error}</details>"
    yield answer


# -- the parts of a line ---------------------------------------------------------------------------


def describe_state(call: LoggedCall) -> str:
    """Return the state of a call, or how it ended."""
    if call.stopped_by:
        return "stopped"
    if call.task_id is not None:
        return f"{call.state!s}, a task"
    return str(call.state)


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
    if call.stopped_by:
        return f"by {call.stopped_by}"
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
