"""Runs a notebook without a frontend: starts its kernel, and runs its cells.

Runs on the bridge's event loop. The kernel is an ordinary one: its cells load the extension, and
its tools are reached through the record that it publishes, like those of any live notebook.
Together with `bridge.headless.kernel_process` the only door to nbclient and nbformat, whose
exceptions become a `NotebookError`. `notebook_trust` decides whether a file may be run.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from mcp_notebook.bridge.headless import jsonschema_import  # noqa: F401

# isort: split
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from mcp_notebook.bridge.headless.cell_progress import CellProgress
from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
from mcp_notebook.bridge.headless.kernel_process import (
    KernelLaunch,
    KernelProcess,
    check_kernel_name,
    make_environment,
    make_silent_logger,
    run_kernel,
)
from mcp_notebook.bridge.headless.notebook_code import find_kernel_name
from mcp_notebook.bridge.headless.notebook_reader import (
    describe_code,
    list_code_cells,
    read_notebook,
)
from mcp_notebook.bridge.headless.notebook_trust import check_trust
from mcp_notebook.bridge.headless.offers import keep_offer
from mcp_notebook.bridge.headless.script_environment import find_block, install_environment
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import KernelDied, NotebookError, OffersNothing
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.wording import strip_escapes
from mcp_notebook.wire import messages

Version: TypeAlias = tuple[str, NotebookNode]
"""The text of a notebook's file, and the parsed notebook."""


@dataclass(frozen=True)
class RunningNotebook:
    """A notebook whose cells have run and whose kernel is kept."""

    record: Record
    """The kernel's record."""
    wait_for_end: Callable[[], Awaitable[str]]
    """Waits until the kernel's process ends, and returns how: "ended with exit status 3"."""

    async def describe_end(self) -> str:
        """Wait until the kernel's process ends, and return the error for its calls."""
        end = await self.wait_for_end()
        return f"The kernel of {self.record.name!r} {end}, and the call was lost."


@asynccontextmanager
async def run_notebook(  # noqa: PLR0913 - what it uses
    path: Path,
    settings: Settings,
    *,
    progress: Callable[[CellProgress], None],
    kernel_id: str | None = None,
    early: EarlyKernel | None = None,
    version: Version | None = None,
    tells_distrust: bool = True,
) -> AsyncIterator[RunningNotebook]:
    """Run a notebook's cells in a kernel of its own, and keep the kernel for the block.

    Cells tagged ``skip-execution`` are skipped, as elsewhere in Jupyter.

    Args:
        path: The notebook.
        settings: For the kernel: whether cells may fail, how long they may run, and whether an
            untrusted notebook may be run.
        progress: Called before each cell and at the end.
        kernel_id: Id of the kernel's record; the id of an earlier kernel replaces that kernel.
        early: The notebook's kernel, if it was started early.
        version: The version to run; None: the current content of the file.
        tells_distrust: Whether to warn if the notebook is not trusted.

    Yields:
        The notebook, once all its cells have run. Its kernel may die within the block.

    Raises:
        NotebookError: The notebook does not exist, cannot or must not be run, or offers no tools.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: ASYNC240, PTH100 - touches no disk
    text, document = version or read_notebook(path)
    notebook = list_code_cells(document)
    kernel_name = find_kernel_name(notebook.metadata.get("kernelspec", {}))
    sources = [cell.source for cell in notebook.cells]
    block = find_block(path, sources) if settings.own_environment else None
    if block is None:
        check_kernel_name(kernel_name, path)
    await check_trust(path, text, settings, is_told=tells_distrust)
    kernel_id = early.kernel_id if early else kernel_id or make_id()
    python = None if block is None else await install_environment(path, block, settings)
    launch = KernelLaunch(kernel_name, path, make_environment(path, settings, kernel_id), python)
    if early is not None and block is None and early.launch.name == kernel_name:
        launch = early.launch
    elif early is not None:  # the file has changed since
        await early.launch.end()
    try:
        async with run_kernel(launch, settings) as kernel:
            await _run_cells(kernel, path, notebook, settings, progress)
            record, tools = await _find_record(path, settings, kernel_id)
            keep_offer(settings.home, path, describe_code(document), record.name, tools)
            yield RunningNotebook(record, kernel.wait_for_end)
    finally:
        list_live_records(
            settings.records_folder
        )  # removes the record and socket of a killed kernel


# -- the cells -------------------------------------------------------------------------------------


async def _run_cells(
    kernel: KernelProcess,
    path: Path,
    notebook: NotebookNode,
    settings: Settings,
    progress: Callable[[CellProgress], None],
) -> None:
    """Run the cells in order; only code cells are numbered."""
    runner = NotebookClient(
        notebook,
        km=kernel.manager,
        log=make_silent_logger(),
        allow_errors=True,  # otherwise the kernel may skip a cell sent soon after a failed one
        on_cell_error=_raise_error,
    )
    runner.kc = kernel.client
    total = len(notebook.cells)
    is_package = path.is_relative_to(settings.packages_folder)  # its cells are not the user's
    advice = "Fix the cell, or continue after errors with --allow-errors."
    failure: str | None = None
    for number, cell in enumerate(notebook.cells, start=1):
        progress(
            CellProgress(
                notebook=path, done=number - 1, total=total, source=cell.source, failure=failure
            )
        )
        where = f"Code cell {number} of {total} of {path.name}"
        if is_package:
            where = f"`--package {path.stem}`"
        failure = await _run_cell(runner, kernel, number - 1, where, settings)
        if failure is not None and not settings.allow_errors:
            raise NotebookError(failure if is_package else f"{failure}\n{advice}")
    progress(CellProgress(notebook=path, done=total, total=total, failure=failure))


def _raise_error(cell: NotebookNode, cell_index: int, execute_reply: Any) -> None:  # noqa: ARG001
    """Raise a cell's error, which nbclient allows; nbclient chooses the parameters' names."""
    if "raises-exception" not in cell.metadata.get("tags", []):
        raise CellExecutionError.from_cell_and_msg(cell, execute_reply["content"])


async def _run_cell(
    runner: NotebookClient, kernel: KernelProcess, index: int, where: str, settings: Settings
) -> str | None:
    """Run one cell, and return why it failed, or None if it succeeded.

    Raises:
        NotebookError: The kernel cannot run further cells.
    """
    cell = runner.nb.cells[index]
    try:
        with anyio.fail_after(settings.cell_timeout):
            await _execute(runner, cell, index)
    except CellExecutionError as error:
        return f"{where} failed:\n\n{_indent(cell.source)}\n\n{_format_traceback(cell, error)}"
    except TimeoutError:
        raise NotebookError(
            f"{where} ran longer than {settings.cell_timeout:g} s:\n\n{_indent(cell.source)}\n\n"
            "MCP_NOTEBOOK_CELL_TIMEOUT sets the limit."
        ) from None
    except DeadKernelError:
        raise KernelDied(
            f"The kernel died in this cell: {where}\n\n{_indent(cell.source)}\n\n"
            f"{kernel.describe_death()}"
        ) from None
    return None


async def _execute(runner: NotebookClient, cell: NotebookNode, index: int) -> None:
    try:
        await runner.async_execute_cell(cell, index)
    except DeadKernelError as error:
        # nbclient mistakes the cancellation of our task for the kernel's death. Raise the original
        # exception: its message tells anyio which scope was cancelled.
        task, cause = asyncio.current_task(), error.__context__
        if task is not None and task.cancelling() and isinstance(cause, asyncio.CancelledError):
            raise cause from None
        raise


def _indent(source: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in source.strip().splitlines())


def _format_traceback(cell: NotebookNode, error: CellExecutionError) -> str:
    """Return the cell's traceback as plain text."""
    if error.ename == "StdinNotImplementedError":
        return (
            "The cell asks for input, but nobody can answer without a frontend. Write the value "
            "into the notebook, or read it from the environment."
        )
    lines = [line for output in cell.outputs for line in _list_error_lines(output)] or [
        f"{error.ename}: {error.evalue}"
    ]
    return strip_escapes("\n".join(lines)).strip()


def _list_error_lines(output: Any) -> list[str]:
    return list(output.traceback) if output.output_type == "error" else []


# -- its tools -------------------------------------------------------------------------------------


async def _find_record(
    path: Path, settings: Settings, kernel_id: str
) -> tuple[Record, Sequence[messages.ToolInfo]]:
    """Return the kernel's record and its tools, at least one."""
    records = list_live_records(settings.records_folder)
    record = next((record for record in records if record.id == kernel_id), None)
    if record is None:
        raise OffersNothing(
            f"{path.name} offers no tools: none of its cells ran `%load_ext mcp_notebook`. Add "
            "that as a cell, and `%%mcp_tool` as the first line of a cell with functions."
        )
    async with Links(Catalog(), on_change=lambda: None) as links:
        await links.connect(record)
        tools = links.open_links[0].initial_tools
    if not tools and not settings.inspect:
        raise OffersNothing(
            f"{path.name} offers no tools: it runs `%load_ext mcp_notebook`, but declares none. "
            "Put `%%mcp_tool` as the first line of a cell with functions."
        )
    return record, tools
