"""``mcp-notebook check FILE``: options of the checks in `check.examination`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.runner import exit_with_messages, run_command
from mcp_notebook.settings.settings import Settings

app = typer.Typer(add_completion=False)
_FAILED = 2
"""The exit status if the notebook could not be checked."""


@app.command(
    cls=Command,
    epilog=format_examples(
        "mcp-notebook check notebooks/weather.ipynb",
        "mcp-notebook check notebooks/weather.ipynb --all",
        "mcp-notebook check notebooks/weather.ipynb --lock",
    ),
)
def check(  # noqa: PLR0913 - one for each option
    notebook: Annotated[
        Path,
        typer.Argument(metavar="NOTEBOOK", help="The notebook to check.", show_default=False),
    ],
    *,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Also call the tools that are not read-only: what they do, they do."
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="How long a call with an example may take."),
    ] = 30.0,
    lock: Annotated[
        bool,
        typer.Option("--lock", help="Write NOTEBOOK.tools.lock, with which later checks compare."),
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
    live: Annotated[str | None, typer.Option("--live", hidden=True)] = None,
) -> None:
    """Test and review the tools of a notebook before a model uses them.

    The notebook runs in a kernel of its own. Each read-only tool is called with its examples: in a
    copy of the kernel, to see what it changes, and by clients of both eras of MCP.

    If the notebook has a lock, what has changed since is judged for callers: breaking, to look at,
    or compatible.

    The exit status is 1 if there is something to correct, and 2 if the check was not possible.
    """
    with exit_with_messages(_FAILED):
        from mcp_notebook.check.examination import Examination, examine, examine_live

        if live is not None:  # started by `%mcp check`, which writes the cells to stdin
            cells = json.load(sys.stdin)
            if not run_command(examine_live, Settings.from_environment(), live, cells):
                raise typer.Exit(1)
            return
        examination = Examination(
            notebook=notebook,
            limit=timeout,
            calls_all=all_,
            locks=lock,
            as_json=json_,
        )
        is_clean = run_command(examine, Settings.from_environment(), examination)
    if not is_clean:
        raise typer.Exit(1)
