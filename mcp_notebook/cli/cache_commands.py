"""``mcp-notebook cache``: fills and clears the folder in which kernels cache schemas.

Runs in the process of the command, on its event loop. It runs notebooks, whose kernels fill the
folder, and counts and removes the files; what is in them is the business of
`kernel.schemas.schema_cache`.
"""

from collections.abc import Sequence
from pathlib import Path

from mcp_notebook.bridge.headless.cell_progress import show_on_stderr
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_output
from mcp_notebook.text.wording import count


async def warm_cache(settings: Settings, notebooks: Sequence[Path]) -> None:
    """Run notebooks, so that the schemas of their tools are cached when they are served.

    Raises:
        NotebookError: A notebook cannot be run.
        SettingsError: The cache is turned off.
    """
    if not settings.schema_cache:
        raise SettingsError(
            "The schema cache is turned off. Unset MCP_NOTEBOOK_SCHEMA_CACHE first."
        )
    folder = settings.schemas_folder
    before = _list_files(folder)
    for notebook in notebooks:
        with show_on_stderr() as progress:
            async with run_notebook(notebook, settings, progress=progress):
                pass
    after = _list_files(folder)
    new = after.keys() - before.keys()
    print_output(f"{count(len(new), 'new schema')}, {len(after)} in all, in {folder}")


async def clear_cache(settings: Settings) -> None:
    """Remove all cached schemas, and print how many there were."""
    files = _list_files(settings.schemas_folder)
    for path in files:
        path.unlink(missing_ok=True)
    size = sum(files.values())
    number = count(len(files), "schema")
    print_output(f"{number} removed ({size / 1024:.0f} KiB) from {settings.schemas_folder}")


def _list_files(folder: Path) -> dict[Path, int]:
    """Return the cached files and their sizes; other processes may remove them meanwhile."""
    sizes = {}
    for path in folder.glob("*.json"):
        try:
            sizes[path] = path.stat().st_size
        except FileNotFoundError:
            continue
    return sizes
