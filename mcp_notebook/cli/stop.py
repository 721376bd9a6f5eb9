"""``mcp-notebook stop``: stops a call from a shell.

Runs in the process of the command; the work is the business of `cli.stop_command`.
"""

from typing import Annotated

import typer

from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings

EXAMPLE = "Example: mcp-notebook stop sales:12"


def stop(
    call: Annotated[
        str | None,
        typer.Argument(
            metavar="CALL",
            help="The call's number, as `%mcp log` shows it, with its notebook where two have a "
            "call of this number: 12 or sales:12. Without it, the calls are listed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Stop a call that waits or runs, also while a cell or the call itself holds its kernel.

    Without CALL, list the calls that wait or run in all notebooks.
    """
    settings = Settings.from_environment()
    from mcp_notebook.cli.stop_command import stop as stop_named  # noqa: PLC0415

    run_command(stop_named, settings, call)
