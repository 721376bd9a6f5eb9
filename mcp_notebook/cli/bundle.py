"""``mcp-notebook bundle``: its options. `bridge.headless.bundle` writes the files."""

from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_output

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog=format_examples(
        "mcp-notebook bundle sales.ipynb",
        "mcp-notebook bundle sales.ipynb bundles/sales --include orders.csv",
    ),
)
def bundle(
    notebook: Annotated[
        Path,
        typer.Argument(metavar="NOTEBOOK", help="The notebook.", show_default=False),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder for the files, which must not exist (default: NOTEBOOK-bundle).",
            show_default=False,
        ),
    ] = None,
    *,
    include: Annotated[
        list[Path] | None,
        typer.Option(
            "--include",
            metavar="FILE",
            help="A file or folder next to the notebook that it reads. Hidden files are packed "
            "only if you name them, and outputs of a notebook only if you name the notebook. "
            "Repeat the option for several.",
        ),
    ] = None,
) -> None:
    """Pack a notebook with its packages for another machine.

    The notebook is run in a new environment with the packages of its script block (PEP 723).
    If a cell fails, nothing is written.

    The folder gets the notebook, the locked versions of the packages, a bundle for Claude Desktop
    (.mcpb) and a Containerfile.
    """
    from mcp_notebook.bridge.headless.bundle import write_bundle

    folder = folder or Path(f"{notebook.stem}-bundle")
    run_command(write_bundle, notebook, folder, include or (), Settings.from_environment())
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            print_output(str(file))
