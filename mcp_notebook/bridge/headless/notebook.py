"""A notebook without a frontend: reads it, starts its kernel, runs its cells, ends the kernel.

Runs in the bridge, on its event loop. The kernel is an ordinary one and its cells load the
extension themselves; what they offer is reached through the record they publish, like any live
notebook (`bridge.kernels.links`). The one door of jupyter_client, nbclient and nbformat: whatever
they raise becomes a `NotebookError`. Who is told about progress, what is served, and what happens
when the kernel dies (`bridge.headless.supervisor`), is the caller's business.
"""

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import nbformat
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.session import Session
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from nbformat.reader import NotJSONError, parse_json
from nbformat.reader import reads as read_any_version

from mcp_notebook.bridge.headless.cell_progress import CellProgress
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery import Record, live_records, new_id
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings import Settings

_DEFAULT_KERNEL = "python3"
"""For a notebook that names none."""
_SHUTDOWN_WAIT = 1.0
"""Seconds for a kernel to end: half of them after the request, half after SIGTERM, then SIGKILL."""
_SHUTDOWN_LIMIT = 5.0
"""Seconds after which the end of a kernel is no longer waited for."""
_LONGEST_TMP = 60
"""Characters. Sockets live in the temporary folder, and a socket's path has at most about 100."""
_TAIL = 2_000
"""Characters of a kernel's last words in an error message."""
_FIRST_LOOK = 0.01
"""Seconds between two looks at whether a kernel's process still runs, at first..."""
_LOOK = 0.5
"""...and later."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*(\x07|\x1b\\)")
"""Terminal escapes: colours and the like."""


@dataclass(frozen=True)
class _Kernel:
    """A kernel process and our conversation with it."""

    manager: AsyncKernelManager
    client: AsyncKernelClient
    log: Path
    """What the process itself wrote; cells' output is not in it."""

    async def ended(self) -> str:
        """Wait until the process has ended, and return how: "ended with exit status 3"."""
        wait = _FIRST_LOOK
        while await self.manager.is_alive():
            await anyio.sleep(wait)
            wait = min(2 * wait, _LOOK)
        return self.end()

    def end(self) -> str:
        """Return how the process ended."""
        process = getattr(self.manager.provisioner, "process", None)
        return _end_of(None if process is None else process.poll())

    def last_words(self) -> str:
        """Return how the process ended, and the end of its log."""
        said = self.log.read_text(encoding="utf-8", errors="replace").strip()[-_TAIL:]
        return f"Its process {self.end()}." + (f" It said:\n{said}" if said else "")


@dataclass(frozen=True)
class RunningNotebook:
    """A notebook whose cells have run, and whose kernel is kept."""

    record: Record
    """Of the kernel."""
    ended: Callable[[], Awaitable[str]]
    """Waits until the kernel's process has ended, and returns how: "ended with exit status 3"."""

    async def obituary(self) -> str:
        """Wait until the kernel's process has ended, and return what its calls are told."""
        return f"The kernel of {self.record.name!r} {await self.ended()}, and the call was lost."


@asynccontextmanager
async def run_notebook(
    path: Path,
    settings: Settings,
    *,
    progress: Callable[[CellProgress], None],
    kernel_id: str | None = None,
) -> AsyncIterator[RunningNotebook]:
    """Run a notebook's cells in a kernel of their own, and keep the kernel for the block.

    Cells that are tagged ``skip-execution`` are left out, as elsewhere in Jupyter.

    Args:
        path: The notebook.
        settings: For the kernel; says whether cells may fail and how long they may run.
        progress: Told before each cell and at the end.
        kernel_id: Of the kernel's record; one that an earlier kernel had makes this one its heir.

    Yields:
        The kernel, when all cells have run; it may die within the block.

    Raises:
        NotebookError: There is no such notebook, it cannot be run, or it offers no tool.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: ASYNC240, PTH100 - touches no disk
    notebook = _read(path)
    spec_name = _kernel_name(path, notebook)
    kernel_id = kernel_id or new_id()
    with tempfile.TemporaryDirectory(
        prefix="mcpnb-", dir=_short_folder(), ignore_cleanup_errors=True
    ) as folder:
        manager = _manager(spec_name, Path(folder))
        try:
            kernel = await _start(manager, path, _environment(path, settings, kernel_id), settings)
            try:
                await _run_cells(kernel, path, notebook, settings, progress)
                yield RunningNotebook(await _offered(path, settings, kernel_id), kernel.ended)
            finally:
                kernel.client.stop_channels()
        finally:
            await _end(manager)
            live_records(settings.records_folder)  # a killed kernel left its record and socket


# -- before the kernel -----------------------------------------------------------------------------


def _read(path: Path) -> NotebookNode:
    """Return a notebook of the current format with the code cells of the file, without outputs."""
    if path.is_dir():
        inside = sorted(path.glob("*.ipynb"))
        example = inside[0] if inside else path / "NAME.ipynb"
        raise NotebookError(f"{path} is a folder. Name a notebook, for example {example}.")
    try:
        return _parse(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise NotebookError(f"There is no file {path}. Check its name and folder.") from None
    except OSError as error:
        raise NotebookError(f"{path} cannot be read: {error.strerror}.") from None
    # nbformat meets a document of another shape with whatever it stumbles over.
    except Exception as error:  # noqa: BLE001
        said = str(error).partition("\n")[0] or type(error).__name__
        reason = "it is no JSON" if isinstance(error, NotJSONError) else said
        raise NotebookError(
            f"{path} is no Jupyter notebook ({reason}). Save it from Jupyter as .ipynb."
        ) from None


def _parse(text: str) -> NotebookNode:
    document = parse_json(text)
    if not isinstance(document, dict) or "nbformat" not in document:
        raise ValueError("it does not name its nbformat")
    current: Any = nbformat.convert(read_any_version(text), 4)
    cells = [
        nbformat.v4.new_code_cell(cell.source, metadata=cell.get("metadata", {}))
        for cell in current.cells
        if cell.cell_type == "code"
    ]
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata=current.metadata)
    return notebook


def _kernel_name(path: Path, notebook: NotebookNode) -> str:
    """Return the kernelspec to start, which exists and is for Python."""
    name = str(notebook.metadata.get("kernelspec", {}).get("name") or _DEFAULT_KERNEL)
    specs = KernelSpecManager(log=_silent())
    try:
        spec = specs.get_kernel_spec(name)
    except NoSuchKernel:
        known = ", ".join(sorted(specs.find_kernel_specs())) or "none: `pip install ipykernel`"
        raise NotebookError(
            f"{path.name} wants the kernel {name!r}, which is not installed here. Installed: "
            f"{known}. Install it, or choose another kernel for the notebook in Jupyter and save."
        ) from None
    if spec.language.lower() != "python":
        raise NotebookError(
            f"{path.name} wants the kernel {name!r}, which is for {spec.language}. Only Python "
            "notebooks can offer tools."
        )
    return name


def _environment(path: Path, settings: Settings, kernel_id: str) -> dict[str, str]:
    """Return what the kernel's extension needs to publish the record that we wait for."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_NOTEBOOK")}
    env |= settings.environment()
    env.pop("MCP_NOTEBOOK_TOKEN", None)  # a notebook may print its environment
    return env | {"MCP_NOTEBOOK_KERNEL_ID": kernel_id, "JPY_SESSION_NAME": str(path)}


# -- the kernel ------------------------------------------------------------------------------------


def _short_folder() -> str | None:
    """Return where to put sockets: None for the usual place."""
    too_long = len(tempfile.gettempdir()) > _LONGEST_TMP and Path("/tmp").is_dir()  # noqa: S108
    return "/tmp" if too_long else None  # noqa: S108 - mkdtemp's own folder is private


def _silent() -> logging.Logger:
    """Return a logger that says nothing: what Jupyter's parts log there, they raise as well."""
    logger = logging.getLogger("mcp_notebook.headless.jupyter")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def _manager(spec_name: str, folder: Path) -> AsyncKernelManager:
    manager = AsyncKernelManager(
        kernel_name=spec_name, connection_file=str(folder / "kernel.json"), log=_silent()
    )
    # Without encryption, ports of 127.0.0.1 are open to all users of the machine.
    if sys.platform != "win32":
        manager.transport = "ipc"
        manager.ip = str(folder / "k")
    manager.shutdown_wait_time = _SHUTDOWN_WAIT
    return manager


async def _start(
    manager: AsyncKernelManager, path: Path, env: dict[str, str], settings: Settings
) -> _Kernel:
    """Start the kernel process and wait until it answers."""
    log = Path(manager.connection_file).with_suffix(".log")
    try:
        with log.open("wb") as file:
            await manager.start_kernel(
                env=env,
                cwd=str(path.parent),
                stdin=subprocess.DEVNULL,
                # Never our own stdout, which may carry the protocol.
                stdout=file,
                stderr=file,
            )
    except Exception as error:
        raise NotebookError(
            f"The kernel {manager.kernel_name!r} of {path.name} cannot be started: {error}."
        ) from error
    # A session of its own: clients that share one take each other's replies.
    session = Session(key=manager.session.key, signature_scheme=manager.session.signature_scheme)
    client: AsyncKernelClient = manager.client(session=session)
    kernel = _Kernel(manager, client, log)
    client.start_channels(stdin=False)  # so that input() fails, where it would wait for ever
    try:
        await client.wait_for_ready(timeout=settings.start_timeout)
    except RuntimeError:
        alive = await manager.is_alive()
        client.stop_channels()
        if alive:
            raise NotebookError(
                f"The kernel {manager.kernel_name!r} of {path.name} did not answer within "
                f"{settings.start_timeout:g} s. MCP_NOTEBOOK_START_TIMEOUT sets the limit."
            ) from None
        words = kernel.last_words()
        missing = "No module named ipykernel" in words
        step = " Install ipykernel in its environment: `pip install ipykernel`." if missing else ""
        raise NotebookError(
            f"The kernel {manager.kernel_name!r} of {path.name} ended while starting.{step} {words}"
        ) from None
    except BaseException:
        client.stop_channels()
        raise
    return kernel


async def _end(manager: AsyncKernelManager) -> None:
    """End the kernel process, within bounds, also when we are cancelled."""
    with anyio.move_on_after(_SHUTDOWN_LIMIT, shield=True):
        if manager.has_kernel:
            await manager.shutdown_kernel()
        else:
            await manager.cleanup_resources()


def _end_of(status: int | None) -> str:
    """Say how a process ended, as a part of a sentence."""
    if status is None:
        return "does not answer"
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a signal without a name
        name = f"signal {-status}"
    return f"was killed by {name}" + (" (out of memory, perhaps)" if name == "SIGKILL" else "")


# -- the cells -------------------------------------------------------------------------------------


async def _run_cells(
    kernel: _Kernel,
    path: Path,
    notebook: NotebookNode,
    settings: Settings,
    progress: Callable[[CellProgress], None],
) -> None:
    """Run the cells in order; a cell's number is its place among the code cells."""
    runner = NotebookClient(notebook, km=kernel.manager, log=_silent())
    runner.kc = kernel.client
    total = len(notebook.cells)
    failed: str | None = None
    for number, cell in enumerate(notebook.cells, start=1):
        progress(
            CellProgress(
                notebook=path, done=number - 1, total=total, source=cell.source, failed=failed
            )
        )
        where = f"Code cell {number} of {total} of {path.name}"
        failed = await _run_cell(runner, kernel, number - 1, where, settings)
        if failed is not None and not settings.allow_errors:
            raise NotebookError(f"{failed}\nMend the cell, or go on with --allow-errors.")
    progress(CellProgress(notebook=path, done=total, total=total, failed=failed))


async def _run_cell(
    runner: NotebookClient, kernel: _Kernel, index: int, where: str, settings: Settings
) -> str | None:
    """Run one cell; return how it failed, None if it did not.

    Raises:
        NotebookError: The kernel can run no further cell.
    """
    cell = runner.nb.cells[index]
    try:
        with anyio.fail_after(settings.cell_timeout):
            await _execute(runner, cell, index)
    except CellExecutionError as error:
        return f"{where} failed:\n\n{_indented(cell.source)}\n\n{_traceback(cell, error)}"
    except TimeoutError:
        raise NotebookError(
            f"{where} ran longer than {settings.cell_timeout:g} s:\n\n{_indented(cell.source)}\n\n"
            "MCP_NOTEBOOK_CELL_TIMEOUT sets the limit."
        ) from None
    except DeadKernelError:
        raise NotebookError(
            f"The kernel died in this cell: {where}\n\n{_indented(cell.source)}\n\n"
            f"{kernel.last_words()}"
        ) from None
    return None


async def _execute(runner: NotebookClient, cell: NotebookNode, index: int) -> None:
    try:
        await runner.async_execute_cell(cell, index)
    except DeadKernelError as error:
        # nbclient takes the cancelling of our task for the kernel's death. It is the original that
        # is raised again: its message tells anyio's scopes whose it is.
        task, cause = asyncio.current_task(), error.__context__
        if task is not None and task.cancelling() and isinstance(cause, asyncio.CancelledError):
            raise cause from None
        raise


def _indented(source: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in source.strip().splitlines())


def _traceback(cell: NotebookNode, error: CellExecutionError) -> str:
    """Return the cell's traceback as plain text."""
    if error.ename == "StdinNotImplementedError":
        return (
            "It asks for input, and without a frontend there is nobody to answer: write the value "
            "into the notebook, or read it from the environment."
        )
    lines = [line for output in cell.outputs for line in _error_lines(output)] or [
        f"{error.ename}: {error.evalue}"
    ]
    return _ESCAPES.sub("", "\n".join(lines)).strip()


def _error_lines(output: Any) -> list[str]:
    return list(output.traceback) if output.output_type == "error" else []


# -- what it offers --------------------------------------------------------------------------------


async def _offered(path: Path, settings: Settings, kernel_id: str) -> Record:
    """Return the kernel's record, when at least one tool is behind it."""
    records = live_records(settings.records_folder)
    record = next((record for record in records if record.id == kernel_id), None)
    if record is None:
        raise NotebookError(
            f"{path.name} offers no tools: none of its cells ran `%load_ext mcp_notebook`. Add "
            "that as a cell, and `%%mcp_tool` on the first line of a cell with functions."
        )
    catalog = Catalog()
    async with Links(catalog, on_change=lambda: None) as links:
        await links.connect(record)
        tools = catalog.entries()
    if not tools:
        raise NotebookError(
            f"{path.name} offers no tools: it runs `%load_ext mcp_notebook`, but declares none. "
            "Put `%%mcp_tool` on the first line of a cell with functions."
        )
    return record
