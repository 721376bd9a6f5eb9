"""``mcp-notebook demo``: opens JupyterLab on a small notebook with a first tool.

The notebook is copied into a folder of the user's. The process of the command becomes JupyterLab.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.errors import NotebookError
from mcp_notebook.text.terminal import print_note

app = typer.Typer(add_completion=False)

_NOTEBOOK = Path(__file__).with_name("demo.ipynb")
_PACKAGES = ("jupyterlab", "matplotlib", "pandas", "vega_datasets")
"""The packages that the demo needs besides mcp-notebook."""


@app.command(cls=Command, epilog="Example: mcp-notebook demo")
def demo(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder for the notebook, created if necessary."),
    ] = Path("mcp-notebook-demo"),
    *,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open JupyterLab in a browser.")
    ] = True,
) -> None:
    """Open JupyterLab on a small notebook with a first tool.

    The notebook is copied to FOLDER. A copy that is there already is opened as it is.
    """
    _check_packages()
    notebook = _copy_notebook(folder)
    print_note(f"Starting JupyterLab on {notebook}. Press Ctrl-C twice to stop it.")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        line = shlex.join(["jupyter", "lab", "--allow-root", str(notebook)])
        print_note(f"If JupyterLab refuses to run as root, start it with `{line}`.")
    # Without it, the addresses that JupyterLab prints lead to its launcher.
    page = f"--LabApp.default_url=/lab/tree/{notebook.name}"
    options = [] if browser else ["--no-browser", page]
    _become([sys.executable, "-m", "jupyterlab", *options, str(notebook)])


def _check_packages(packages: Sequence[str] = _PACKAGES) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        command = shlex.join([sys.executable, "-m", "pip", "install", *missing])
        raise NotebookError(
            f"The demo needs packages that are not installed: {', '.join(missing)}. Install them "
            f"beside mcp-notebook with `{command}`."
        )


def _copy_notebook(folder: Path) -> Path:
    """Copy the notebook into a folder, mark it as trusted, and return its path."""
    from nbformat import read
    from nbformat.sign import NotebookNotary

    path = folder.absolute() / "demo.ipynb"
    if path.is_file():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_NOTEBOOK, path)
    except OSError as error:
        raise NotebookError(
            f"The demo's notebook cannot be written to {path}: {error.strerror}. Name another "
            "folder: `mcp-notebook demo FOLDER`."
        ) from None
    with suppress(OSError):  # without a place for signatures, it is only called untrusted
        notary = NotebookNotary()
        notary.sign(read(path, as_version=4))
        notary.store.close()
    return path


def _become(command: list[str]) -> None:
    """Replace this process with another program; on Windows, run it and exit as it does."""
    if sys.platform == "win32":
        raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - our own
    os.execv(command[0], command)  # noqa: S606 - our own
