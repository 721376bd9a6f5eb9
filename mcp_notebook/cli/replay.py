"""``mcp-notebook replay FILE``: argv -> one run of `cli.replay_command`.

Runs in the process of the command.
"""

from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.options import AllowErrors, Notebook, TrustedOnly, Yes
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings

EXAMPLE = "Example: mcp-notebook replay sales-calls.ipynb --notebook sales.ipynb"


def replay(  # noqa: PLR0913 - one for each option
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `%mcp record` wrote.", show_default=False)
    ],
    *,
    notebook: Notebook = None,
    allow_errors: AllowErrors = False,
    trusted_only: TrustedOnly = False,
    yes: Yes = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
) -> None:
    """Make recorded calls again, and compare what comes back.

    The exit status is 1 if a call gave something else or could not be made.
    """
    settings = Settings.from_environment(
        allow_errors=allow_errors or None, trusted_only=trusted_only or None
    )
    from mcp_notebook.cli.replay_command import Replay, replay_calls  # noqa: PLC0415

    request = Replay(file=file, notebook=notebook, is_confirmed=yes, as_json=json_)
    if not run_command(replay_calls, settings, request):
        raise typer.Exit(1)
