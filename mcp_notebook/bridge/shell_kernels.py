"""Links the kernels that a command needs: those of all open notebooks, or of one notebook.

Runs in a short-lived process, without MCP. A notebook that is not open is run, and its kernel ends
with the command.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import LinkError, NotebookError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import MissingTool, explain_failed_link, explain_left_out
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import suggest
from mcp_notebook.wire import messages


@dataclass(frozen=True)
class LinkedKernels:
    """The kernels that a command uses."""

    links: Links
    catalog: Catalog
    names: Mapping[str, str]
    """The names of their notebooks, by the id of the kernel."""
    failures: Sequence[MissingTool]
    """The notebooks whose kernels cannot be linked, or that a folder's list leaves out."""


@asynccontextmanager
async def read_folder(settings: Settings, folder: Path) -> AsyncIterator[LinkedKernels]:
    """Read what the notebooks in a folder last offered. No kernel is started.

    Args:
        settings: Name the folder of what notebooks last offered.
        folder: The folder.

    Raises:
        NotebookError: The folder cannot be read.
    """
    from mcp_notebook.bridge.headless.cell_progress import SharedProgress  # noqa: PLC0415
    from mcp_notebook.bridge.headless.folders.folder import NotebookFolders  # noqa: PLC0415

    catalog = Catalog()
    async with Links(catalog) as links:
        folders = NotebookFolders([folder], settings, links, SharedProgress())
        await folders.list_all()
        left_out = [explain_left_out(str(path), reason) for path, reason in folders.skipped.items()]
        yield LinkedKernels(links, catalog, folders.names, left_out)


@asynccontextmanager
async def link_kernels(settings: Settings, notebook: Path | None) -> AsyncIterator[LinkedKernels]:
    """Link the kernels of all open notebooks, or of one notebook.

    Args:
        settings: Name the folder of the kernels' records; for a notebook that is run, also the
            settings of its kernel.
        notebook: The name of an open notebook, or the path of a file; None for all open notebooks.

    Raises:
        NotebookError: The notebook is not open and cannot be run.
    """
    async with AsyncExitStack() as stack:
        records = _find_records(settings, notebook)
        running = None
        if notebook is not None and not records:
            _note_run(notebook)
            # Late: jupyter_client and nbformat take longer to import than to list the tools.
            from mcp_notebook.bridge.headless.cell_progress import show_on_stderr  # noqa: PLC0415
            from mcp_notebook.bridge.headless.notebook import run_notebook  # noqa: PLC0415

            with show_on_stderr() as progress:
                running = await stack.enter_async_context(
                    run_notebook(notebook, settings, progress=progress)
                )
        catalog = Catalog()
        failures: Sequence[MissingTool] = ()
        links = await stack.enter_async_context(Links(catalog))
        if running is not None:
            records = [running.record]
            link = links.open_link(running.record, running.describe_end)
            await stack.enter_async_context(link)
        else:
            failures = await _connect(links, records)
        yield LinkedKernels(
            links, catalog, {record.id: record.name for record in records}, failures
        )


def _note_run(notebook: Path) -> None:
    if notebook.expanduser().is_file():
        print_note(f"{notebook} is not open, so all its cells are run for this command.")


async def _connect(links: Links, records: Sequence[Record]) -> list[MissingTool]:
    """Link kernels, and return those that cannot be linked."""
    failures = []
    # In order: it determines the names of notebooks with the same name.
    for record in records:
        try:
            await links.connect(record)
        except LinkError as error:
            is_mismatch = record.protocol != messages.PROTOCOL_VERSION
            failures.append(explain_failed_link(record.name, str(error), is_mismatch=is_mismatch))
    return failures


def _find_records(settings: Settings, notebook: Path | None) -> list[Record]:
    """Return the records of all open notebooks, or of one; none for a file that is not open.

    Raises:
        NotebookError: No open notebook has this name, and it is not the path of a file.
    """
    records = [
        record for record in list_live_records(settings.records_folder) if record.owner == "user"
    ]
    if notebook is None:
        return records
    file = notebook.expanduser()
    path = os.path.realpath(file)
    found = [record for record in records if record.notebook and path == _resolve(record.notebook)]
    if found or os.path.exists(file):  # noqa: PTH110 - false for a name that is too long
        return found
    name = str(notebook)
    named = [record for record in records if name.removesuffix(".ipynb") == record.name]
    if named or notebook.suffix == ".ipynb" or len(notebook.parts) > 1:
        return named
    names = list(dict.fromkeys(record.name for record in records))
    has_file = os.path.isfile(f"{file}.ipynb")  # noqa: PTH113
    meant = f"{name}.ipynb" if has_file else suggest(name, names)
    raise NotebookError(
        f"No open notebook is called {name!r}, and there is no such file. "
        + (f"Did you mean {meant!r}? " if meant else "")
        + f"Open notebooks: {', '.join(names) or 'none'}."
    )


def _resolve(notebook: str) -> str | None:
    # Some frontends report a path that is relative to an unknown folder.
    return os.path.realpath(notebook) if Path(notebook).is_absolute() else None
