"""``mcp-notebook cache``: fills and empties the folder of schemas that kernels keep between starts.

Runs in the process of the command, on its event loop. What a schema is and how it is kept is
`kernel.schemas.schema_cache`'s business: here the notebooks are run, whose kernels fill the folder,
and its files are counted and removed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_notebook.bridge.headless.cell_progress import shown_on_stderr
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings import Settings


async def warm(settings: Settings, notebooks: Sequence[Path]) -> None:
    """Run notebooks, so that their tools' schemas are there when they are served.

    Raises:
        NotebookError: One of them cannot be run.
        SettingsError: Schemas are not kept.
    """
    if not settings.schema_cache:
        raise SettingsError("Schemas are not kept: unset MCP_NOTEBOOK_SCHEMA_CACHE first.")
    folder = settings.schemas_folder
    before = _files(folder)
    for notebook in notebooks:
        with shown_on_stderr() as progress:
            async with run_notebook(notebook, settings, progress=progress):
                pass
    after = _files(folder)
    new = after.keys() - before.keys()
    _print(f"{_counted(len(new))} new, {len(after)} in all, in {folder}")


async def clear(settings: Settings) -> None:
    """Remove all schemas, and say how many there were."""
    files = _files(settings.schemas_folder)
    for path in files:
        path.unlink(missing_ok=True)
    size = sum(files.values())
    _print(f"{_counted(len(files))} removed ({size / 1024:.0f} KiB) from {settings.schemas_folder}")


def _files(folder: Path) -> dict[Path, int]:
    """Return the files of schemas, with their sizes; other processes may remove them meanwhile."""
    found = {}
    for path in folder.glob("*.json"):
        try:
            found[path] = path.stat().st_size
        except FileNotFoundError:
            continue
    return found


def _counted(number: int) -> str:
    return "1 schema" if number == 1 else f"{number} schemas"


def _print(text: str) -> None:
    print(text, file=sys.stdout, flush=True)  # noqa: T201 - the answer of a command
