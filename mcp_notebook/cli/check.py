"""``mcp-notebook check FILE``: options of the checks in `check.examination`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import RUNNING, read_settings, takes_options
from mcp_notebook.cli.runner import exit_with_messages, run_command

app = typer.Typer(add_completion=False)
_FAILED = 2
"""The exit status if the notebook could not be checked."""


@app.command(
    cls=Command,
    epilog=format_examples(
        "mcp-notebook check notebooks/weather.ipynb",
        "mcp-notebook check notebooks/weather.ipynb --fix",
    ),
)
@takes_options(RUNNING)
def check(
    notebook: Annotated[
        Path,
        typer.Argument(metavar="NOTEBOOK", help="The notebook to check.", show_default=False),
    ],
    *,
    fix: Annotated[
        bool, typer.Option("--fix", help="Correct in the notebook what is safe to correct.")
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
    options: Mapping[str, Any],
) -> None:
    """Test and review the tools of a notebook before a model uses them.

    The notebook is run in a kernel of its own. The exit status is 1 if there is something to
    correct, and 2 if the notebook could not be checked.
    """
    with exit_with_messages(_FAILED):
        from mcp_notebook.check.examination import Examination, examine

        examination = Examination(notebook=notebook, fixes=fix, as_json=json_)
        is_clean = run_command(examine, read_settings(**options), examination)
    if not is_clean:
        raise typer.Exit(1)
