"""``mcp-notebook audit``: shows the audit log.

Runs without an event loop. The lines go to stdout and notes about them to stderr. Control
characters in the log never reach the terminal.
"""

import json
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from mcp_notebook.bridge.telemetry.audit_file import AuditReader, explain_problem, find_journals
from mcp_notebook.bridge.telemetry.audit_records import Record, complete
from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.wording import count, make_printable

_FOLLOW_INTERVAL = 0.2
"""Seconds between two looks for new lines."""
_FIRST_LINES = 10
"""Old lines that ``--follow`` shows first."""
_ARGUMENTS_WIDTH = 80
_HASH_WIDTH = 8
_STYLES = {
    "ok": "green",
    "running": "cyan",
    "cancelled": "yellow",
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

app = typer.Typer(add_completion=False)


def _parse_moment(text: str) -> float:
    age = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if age is not None:
        return time.time() - float(age[1]) * _SECONDS[age[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"{text!r} is neither an age, such as 90s, 30m, 1h, 2d or 1w, nor a date and time, "
            "such as 2026-11-22 or 2026-11-22T08:30."
        ) from None


@app.command(
    cls=Command,
    epilog=format_examples(
        "mcp-notebook audit --since 1h --failed",
        "mcp-notebook audit --tool 'sales.*' --json",
    ),
)
def audit(  # noqa: PLR0913 - one for each option
    *,
    tool: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only calls of this tool; `sales.*` matches all tools of a notebook.",
        ),
    ] = None,
    caller: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only calls of this caller.")
    ] = None,
    since: Annotated[
        float | None,
        typer.Option(
            parser=_parse_moment,
            metavar="AGE",
            help="Only calls of the last 90s, 30m, 1h, 2d or 1w (seconds, minutes, hours, days or "
            "weeks), or since a date and time.",
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only calls without a result.")] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Show the last calls, then new calls as they end."),
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print each call as one JSON object, for programs.")
    ] = False,
) -> None:
    """Show the audit log: who called which tool, when, and with what outcome.

    Running calls come last.
    """
    query = _Query(tool=tool, caller=caller, since=since, failed=failed)
    _show(Settings.from_environment(), query, as_json=json_, follow=follow)


@dataclass(frozen=True, kw_only=True)
class _Query:
    """Selects lines of the log."""

    tool: str | None = None
    """A shell pattern for the tool's name or its full name, ``<notebook>.<tool>``."""
    caller: str | None = None
    """A shell pattern for the caller's name."""
    since: float | None = None
    """Only calls that ended later, in seconds since the epoch."""
    failed: bool = False
    """Only calls without a result."""

    def matches(self, record: Record) -> bool:
        """Return whether a line is selected."""
        tool, caller = str(record.get("tool", "")), str(record.get("caller", ""))
        names = (tool, f"{record.get('notebook', '')}.{tool}")
        return (
            (self.tool is None or any(fnmatchcase(name, self.tool) for name in names))
            and (self.caller is None or fnmatchcase(caller, self.caller))
            and (self.since is None or _find_end(record) >= self.since)
            and not (self.failed and record.get("outcome") in ("ok", "running"))
        )


def _show(
    settings: Settings, query: _Query, *, as_json: bool = False, follow: bool = False
) -> None:
    """Print the lines of the log and then the running calls; or follow the log.

    Args:
        settings: Names the log file.
        query: Selects lines.
        as_json: Print lines as they are in the log.
        follow: Print the last lines, then new lines until interrupted.

    Raises:
        SettingsError: The log cannot be read.
    """
    write = _print_json if as_json else _make_printer()
    if not settings.audit:
        print_note("The audit log is turned off. Unset MCP_NOTEBOOK_AUDIT to turn it on.")
    elif not settings.audit_path.exists():
        waiting = " New lines will be shown as they come." if follow else ""
        print_note(
            f"There is no audit log yet. {settings.audit_path} is created by the first "
            f"`mcp-notebook serve`, `mcp-notebook stdio` or `%mcp serve`.{waiting}"
        )
    reader = AuditReader(settings.audit_path)
    try:
        records = filter(query.matches, reader.read())
        if follow:
            last = None if query.since is not None else _FIRST_LINES
            _print_all(deque(records, last), write)
            _follow(reader, query, write)
        else:
            running = filter(query.matches, _list_running(settings))
            number = _print_all(records, write) + _print_all(running, write)
            _note_damage(reader)
            if not number and settings.audit and settings.audit_path.exists():
                _note_emptiness(settings, query)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        problem = explain_problem(error)
        raise SettingsError(
            f"The audit log {settings.audit_path} cannot be read: {problem}."
        ) from None
    finally:
        reader.close()


def _follow(reader: AuditReader, query: _Query, write: Callable[[Record], None]) -> None:
    while True:
        _note_damage(reader)
        time.sleep(_FOLLOW_INTERVAL)
        _print_all(filter(query.matches, reader.read()), write)


def _note_damage(reader: AuditReader) -> None:
    if reader.damaged:
        print_note(f"Skipped {count(reader.damaged, 'damaged line')}.")
    if reader.has_gap:
        print_note("Old lines were removed before they could be shown.")
    reader.damaged, reader.has_gap = 0, False


def _note_emptiness(settings: Settings, query: _Query) -> None:
    if query == _Query():
        print_note(f"{settings.audit_path} is empty.")
    else:
        print_note(f"No line of {settings.audit_path} matches the options.")


def _list_running(settings: Settings) -> Iterator[Record]:
    """Yield running calls, and calls that a killed bridge left behind, oldest first."""
    calls = [
        complete(call) if journal.is_left_behind else call
        for journal in find_journals(settings.audit_path)
        for call in journal.calls
        # The log has all others, or will have them.
        if journal.is_left_behind or call.get("outcome") == "running"
    ]
    yield from sorted(calls, key=lambda call: str(call.get("time")))


def _find_end(record: Record) -> float:
    """Return when a call ended, in seconds since the epoch; for a running call, the time now."""
    if record.get("outcome") == "running":
        return time.time()
    start, seconds = _read_time(record), record.get("seconds")
    if start is None:
        return 0.0
    return start.timestamp() + (seconds if isinstance(seconds, int | float) else 0)


def _read_time(record: Record) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(record.get("time")))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# -- output ----------------------------------------------------------------------------------------


def _print_all(records: Iterable[Record], write: Callable[[Record], None]) -> int:
    """Print records, and return their number."""
    number = 0
    for record in records:
        write(record)
        number += 1
    return number


def _print_json(record: Record) -> None:
    print_output(json.dumps(record, separators=(",", ":")))


def _make_printer() -> Callable[[Record], None]:
    """Return a function that prints a line for people, in color on a terminal."""
    if not sys.stdout.isatty():
        return lambda record: print_output(" ".join(_describe(record)))
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)

    def write(record: Record) -> None:
        moment, outcome, rest = _describe(record)
        style = _STYLES.get(outcome.strip(), "bold red")
        console.print(Text.assemble((moment, "dim"), " ", (outcome, style), " ", rest))

    return write


def _describe(record: Record) -> tuple[str, str, str]:
    """Return the time, the outcome and the rest of a line."""
    moment = _read_time(record)
    when = "?" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"
    if record.get("kind") == "gap":
        return f"{when:19}", "missing  ", f"{record.get('missing')} calls could not be written"
    outcome = _clean(record.get("outcome", "?"))
    if record.get("kind") == "request":
        number = "a request" if record.get("count") == 1 else f"{record.get('count')} requests"
        source, reason = _clean(record.get("address", "?")), _clean(record.get("error", ""))
        return f"{when:19}", f"{outcome:9}", f"{number} from {source}: {reason}"
    user = f" {json.dumps(str(record['user']))}" if record.get("user") else ""
    client = f" ({_clean(record['client'])})" if record.get("client") else ""
    notebook = f"{_clean(record['notebook'])}." if record.get("notebook") else ""
    kind = f" [{_clean(record['tool_kind'])}]" if record.get("tool_kind") else ""
    is_from_view = record.get("kind") == "view" or record.get("by") == "view"
    parts = [
        _format_seconds(record),
        f"{_clean(record.get('caller', '?'))}{user}{client}",
        f"{notebook}{_clean(record.get('tool', '?'))}{kind}{' (view)' * is_from_view}",
        _format_arguments(record),
        _format_error(record),
    ]
    return f"{when:19}", f"{outcome:9}", "  ".join(filter(None, parts))


def _format_seconds(record: Record) -> str:
    seconds = record.get("seconds")
    if record.get("outcome") == "running":
        moment = _read_time(record)
        seconds = None if moment is None else max(time.time() - moment.timestamp(), 0)
    if not isinstance(seconds, int | float):
        return " " * 9
    return f"{seconds * 1000:6.0f} ms" if seconds < 10 else f"{seconds:6.0f} s "  # noqa: PLR2004


def _format_arguments(record: Record) -> str:
    if "arguments" in record:
        text = json.dumps(record["arguments"])
        return text if len(text) <= _ARGUMENTS_WIDTH else f"{text[:_ARGUMENTS_WIDTH]}..."
    digest = record.get("arguments_sha256")
    return f"#{_clean(digest)[:_HASH_WIDTH]}" if digest else ""


def _format_error(record: Record) -> str:
    """Return the error on one line, without its traceback."""
    text, _, _ = str(record.get("error", "")).partition("\nTraceback (most recent call last):")
    return _clean(" ".join(text.split()))


def _clean(value: object) -> str:
    return make_printable(str(value)).replace("\n", " ")
