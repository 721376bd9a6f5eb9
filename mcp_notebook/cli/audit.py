"""``mcp-notebook audit``: its options.

Runs in the process of the command; what it does is the business of `cli.audit_command`.
"""

import re
import time
from datetime import datetime
from typing import Annotated

import typer

from mcp_notebook.settings.settings import Settings

EXAMPLE = "Example: mcp-notebook audit --since 1h --failed"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


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


def audit(  # noqa: PLR0913 - one for each option
    *,
    tool: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only calls of this tool; `sales.*` are those of a notebook."
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
            help="Only calls of the last so many seconds (90s), minutes (30m), hours (1h), days "
            "(2d) or weeks (1w), or since a date and time.",
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only calls that have no result.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Show the last calls, and new ones as they end."),
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print each call as one JSON object, for programs.")
    ] = False,
) -> None:
    """Show who called which tool when, and how the calls ended.

    The calls that run now come last.
    """
    from mcp_notebook.cli.audit_command import AuditQuery, show_audit_log  # noqa: PLC0415

    query = AuditQuery(tool=tool, caller=caller, since=since, failed=failed)
    show_audit_log(Settings.from_environment(), query, as_json=json_, follow=follow)
