"""Runs a notebook without a frontend: starts its kernel, and runs its cells.

Runs on the bridge's event loop. The kernel is an ordinary one: its cells load the extension, and
its tools are reached through the record that it publishes, like those of any live notebook.
Together with `bridge.headless.kernel_process` the only door to nbclient and nbformat, whose
exceptions become a `NotebookError`. `notebook_trust` decides whether a file may be run.
"""

import asyncio
import os
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

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
    choose_kernel,
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
from mcp_notebook.discovery.own_requirement import find_own_requirement
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import KernelDied, NotebookError, OffersNothing
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import REFUSED
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import strip_escapes
from mcp_notebook.wire import messages

_MAX_OUTPUT = 2_000
"""Characters of a failing cell's output in an error message; the last ones are shown."""
_NOT_LOADED = re.compile(r"magic.* `%{1,2}mcp\w*` not found|name 'mcp_\w+' is not defined")
_ADVICE = "Fix the cell, or give it the tag `raises-exception` if it may fail."
_LOAD = "The notebook has not loaded mcp_notebook: add `%load_ext mcp_notebook` as its first cell."
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
    early: EarlyKernel | None = None,
    version: Version | None = None,
    warns: bool = True,
    allow_errors: bool = False,
) -> AsyncIterator[RunningNotebook]:
    """Run a notebook's cells in a kernel of its own, and keep the kernel for the block.

    Cells tagged ``skip-execution`` are skipped, as elsewhere in Jupyter.

    Args:
        path: The notebook.
        settings: For the kernel, and whether an untrusted notebook may be run.
        progress: Called before each cell and at the end.
        early: The notebook's kernel, if it was started early.
        version: The version to run; None: the current content of the file.
        warns: Whether to warn if the notebook is not trusted, or its kernel is not installed.
        allow_errors: Whether to go on after a cell that fails.

    Yields:
        The notebook, once all its cells have run. Its kernel may die within the block.

    Raises:
        NotebookError: The notebook does not exist, cannot or must not be run, or offers no tools.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: ASYNC240, PTH100 - touches no disk
    text, document = version or read_notebook(path)
    notebook = list_code_cells(document)
    kernelspec = notebook.metadata.get("kernelspec", {})
    kernel_name = find_kernel_name(kernelspec)
    sources = [cell.source for cell in notebook.cells]
    block = find_block(path, sources) if settings.own_environment else None
    note = ""
    if block is None:
        language = notebook.metadata.get("language_info", {}).get("name")
        language = str(language or kernelspec.get("language", ""))
        kernel_name, note = choose_kernel(kernel_name, path, language)
    await check_trust(path, text, settings, is_told=warns)
    if note and warns:
        print_note(note)
    kernel_id = early.kernel_id if early else make_id()
    python = None if block is None else await install_environment(path, block, settings)
    launch = KernelLaunch(kernel_name, path, make_environment(path, settings, kernel_id), python)
    if early is not None and block is None and early.launch.name == kernel_name:
        launch = early.launch
    elif early is not None:  # the file has changed since
        await early.launch.end()
    try:
        async with run_kernel(launch, settings) as kernel:
            failures = await _run_cells(
                kernel, path, notebook, progress, note, allow_errors=allow_errors
            )
            record, tools = await _find_record(path, settings, kernel_id, failures)
            keep_offer(settings.home, path, describe_code(document), record.name, tools)
            yield RunningNotebook(record, kernel.wait_for_end)
    finally:
        list_live_records(
            settings.records_folder
        )  # removes the record and socket of a killed kernel


# -- the cells -------------------------------------------------------------------------------------


async def _run_cells(  # noqa: PLR0913 - what it uses
    kernel: KernelProcess,
    path: Path,
    notebook: NotebookNode,
    progress: Callable[[CellProgress], None],
    note: str,
    *,
    allow_errors: bool,
) -> list[str]:
    """Run the cells in order, and return what failed; only code cells are numbered.

    A function that cannot be a tool does not keep a notebook from serving its other tools. The note
    ends the error of a cell.
    """
    refused: list[str] = []
    runner = NotebookClient(
        notebook,
        km=kernel.manager,
        log=make_silent_logger(),
        allow_errors=True,  # otherwise the kernel may skip a cell sent soon after a failed one
        on_cell_error=_raise_error,
        on_cell_executed=partial(_read_payloads, refused),
    )
    runner.kc = kernel.client
    step = CellProgress(notebook=path, done=0, total=len(notebook.cells))
    failures: list[str] = []
    for number, cell in enumerate(notebook.cells, start=1):
        progress(replace(step, source=cell.source))
        where = f"Code cell {number} of {step.total} of {path.name}"
        refused.clear()
        failure = await _run_cell(runner, kernel, number - 1, where, refused)
        if is_refusal := failure is None and bool(refused):
            failure = f"{where}:\n" + "\n".join(refused)
        if failure is not None:
            failures.append(failure)
            if not (allow_errors or is_refusal):
                advice = _LOAD if _NOT_LOADED.search(failure) else _ADVICE
                raise NotebookError(f"{failure}\n{advice} {note}".rstrip())
        step = replace(step, done=number, failure=failure, is_refusal=is_refusal)
    progress(step)
    return failures


def _raise_error(cell: NotebookNode, cell_index: int, execute_reply: Any) -> None:  # noqa: ARG001
    """Raise a cell's error, which nbclient allows; nbclient chooses the parameters' names."""
    if "raises-exception" not in cell.metadata.get("tags", []):
        raise CellExecutionError.from_cell_and_msg(cell, execute_reply["content"])


class _CellExits(Exception):
    """A cell has called `exit()`: the kernel ends as soon as it has answered."""


def _read_payloads(
    refused: list[str],
    cell: NotebookNode,  # noqa: ARG001
    cell_index: int,  # noqa: ARG001
    execute_reply: Any,
) -> None:
    """Note the functions that cannot be tools; raise an error if a cell ends the kernel.

    nbclient chooses the last parameters' names.
    """
    for payload in execute_reply["content"].get("payload", ()):
        if payload.get("source") == REFUSED:
            refused.append(str(payload.get("text")))
        if payload.get("source") == "ask_exit" and not payload.get("keepkernel"):
            raise _CellExits


async def _run_cell(
    runner: NotebookClient, kernel: KernelProcess, index: int, where: str, refused: Sequence[str]
) -> str | None:
    """Run one cell; return why it failed, None if it only has functions that cannot be tools.

    Raises:
        NotebookError: The kernel cannot run further cells.
    """
    cell = runner.nb.cells[index]
    try:
        await _execute(runner, cell, index)
    except CellExecutionError as error:
        if error.evalue == "No module named 'mcp_notebook'":
            raise NotebookError(f"{where} failed: {_explain_lack(kernel)}") from None
        if error.evalue not in refused:
            failure = _describe_failure(cell, error)
            return f"{where} failed:\n\n{_indent(cell.source)}\n\n{failure}"
    except _CellExits:
        raise NotebookError(
            f"{where} ends the kernel with `exit()` or `quit()`, and the tools with it: remove "
            "that line."
        ) from None
    except DeadKernelError:
        raise KernelDied(
            f"The kernel died in this cell: {where}\n\n{_indent(cell.source)}\n\n"
            f"{kernel.describe_death()}"
        ) from None
    return None


def _explain_lack(kernel: KernelProcess) -> str:
    """Return in which environment this package is missing, and the line that installs it there."""
    spec = kernel.manager.kernel_spec
    python = spec.argv[0] if spec else "python"
    line = shlex.join(["uv", "pip", "install", "--python", python, *find_own_requirement()])
    return (
        f"its kernel {kernel.manager.kernel_name!r} runs in another environment ({python}), which "
        f"lacks mcp-notebook. With Python 3.11 or newer, install it there: `{line}`, or the same "
        "with the pip of that environment."
    )


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


def _describe_failure(cell: NotebookNode, error: CellExecutionError) -> str:
    """Return what the cell wrote and its traceback, as plain text."""
    if error.ename == "StdinNotImplementedError":
        return (
            "The cell asks for input, but nobody can answer without a frontend. Write the value "
            "into the notebook, or read it from the environment."
        )
    streams = "".join(out.text for out in cell.outputs if "name" in out)
    written = strip_escapes(streams).strip()
    if len(written) > _MAX_OUTPUT:
        written = f"…{written[-_MAX_OUTPUT:]}"
    lines = [line for out in cell.outputs for line in out.get("traceback", ())]
    name = f"{error.ename}: {error.evalue}"
    traceback = "\n".join(lines) or ("" if name in written else name)  # a usage error is written
    return "\n\n".join(filter(None, (written, strip_escapes(traceback).strip())))


# -- its tools -------------------------------------------------------------------------------------


async def _find_record(
    path: Path, settings: Settings, kernel_id: str, failures: Sequence[str]
) -> tuple[Record, Sequence[messages.ToolInfo]]:
    """Return the kernel's record and its tools, at least one."""
    records = list_live_records(settings.records_folder)
    record = next((record for record in records if record.id == kernel_id), None)
    said = "".join(f"{failure}\n\n" for failure in failures)
    if record is None:
        raise OffersNothing(
            f"{said}{path.name} offers no tools: none of its cells ran `%load_ext mcp_notebook`. "
            "Add that as a cell, and `%%mcp_tool` as the first line of a cell with functions."
        )
    async with Links(Catalog()) as links:
        await links.connect(record)
        tools = links.open_links[0].initial_tools
    if not tools and not settings.inspect:
        raise OffersNothing(
            f"{said}{path.name} offers no tools: correct what failed."
            if failures
            else f"{path.name} offers no tools: it runs `%load_ext mcp_notebook`, but declares "
            "none. Put `%%mcp_tool` as the first line of a cell with functions."
        )
    return record, tools
