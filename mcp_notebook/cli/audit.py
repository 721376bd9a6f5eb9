"""``mcp-notebook audit``: shows the audit log.

Runs without an event loop. The lines go to stdout and notes about them to stderr. Control
characters in the log never reach the terminal.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from mcp_notebook.bridge.telemetry.audit_file import AuditReader, explain_problem
from mcp_notebook.bridge.telemetry.audit_records import Record
from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.discovery.records import Process, is_alive
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.wording import count, make_printable

_LOST = "The bridge was killed before it could write down how the call ended."
_ARGUMENTS_WIDTH = 80
_HASH_WIDTH = 8
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
def audit(
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
    json_: Annotated[
        bool, typer.Option("--json", help="Print each call as one JSON object, for programs.")
    ] = False,
) -> None:
    """Show the audit log: who called which tool, when, and with what outcome.

    Running calls come last.
    """

    def matches(record: Record) -> bool:
        name = str(record.get("tool", ""))
        names = (name, f"{record.get('notebook', '')}.{name}")
        return (
            (tool is None or any(fnmatchcase(each, tool) for each in names))
            and (caller is None or fnmatchcase(str(record.get("caller", "")), caller))
            and (since is None or _find_end(record) >= since)
            and not (failed and record.get("outcome") in ("ok", "running"))
        )

    _show(Settings.from_environment(), matches, as_json=json_)


def _show(settings: Settings, matches: Callable[[Record], bool], *, as_json: bool = False) -> None:
    """Print the calls, running ones last.

    Args:
        settings: Names the log file.
        matches: Selects lines.
        as_json: Print records as they are in the log.

    Raises:
        SettingsError: The log cannot be read.
    """
    write = _print_json if as_json else _print_line
    reader = AuditReader(settings.audit_path)
    try:
        joined = _join(reader.read())
        calls = [call for call in joined if matches(call)]
        if settings.audit == "off":
            print_note("The audit log is turned off. Unset MCP_NOTEBOOK_AUDIT to turn it on.")
        elif not joined:
            print_note(
                "There is no audit log yet. The first `mcp-notebook serve`, `mcp-notebook stdio` "
                f"or `%mcp serve` creates it, in {settings.audit_path.parent}."
            )
        elif not calls:
            print_note("The audit log has no line that matches the options.")
        for call in calls:
            write(call)
        if reader.damaged:
            print_note(f"Skipped {count(reader.damaged, 'damaged line')}.")
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        problem = explain_problem(error)
        raise SettingsError(
            f"The audit log {settings.audit_path} cannot be read: {problem}."
        ) from None


def _join(records: Iterable[Record]) -> list[Record]:
    """Return one record for each call, as they began, and running ones last."""
    calls: dict[object, Record] = {}
    for record in records:
        identity = record.get("id")
        calls[identity if isinstance(identity, str) else object()] = record  # an end for its start
    joined = [_complete(call) if call.get("kind") == "start" else call for call in calls.values()]
    return sorted(joined, key=lambda call: call.get("outcome") == "running")


def _complete(start: Record) -> Record:
    """Return the record of a call without an end: it runs, or has been lost with its bridge."""
    call = start | {"kind": "call", "outcome": "running"}
    return call if _lives(start.get("bridge")) else call | {"outcome": "lost", "error": _LOST}


def _lives(bridge: Any) -> bool:
    """Return whether a bridge is alive, as far as this machine knows."""
    try:
        process = Process(pid=bridge["pid"], started=bridge["started"])
        return bridge["host"] != socket.gethostname() or is_alive(process)
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


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


def _print_json(record: Record) -> None:
    print_output(json.dumps(record, separators=(",", ":")))


def _print_line(record: Record) -> None:
    print_output(" ".join(_describe(record)))


def _describe(record: Record) -> tuple[str, str, str]:
    """Return the time, the outcome and the rest of a line."""
    moment = _read_time(record)
    when = "?" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"
    if record.get("kind") == "gap":
        return f"{when:19}", "missing  ", f"{record.get('missing')} lines could not be written"
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
