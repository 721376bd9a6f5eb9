"""The process of a headless kernel: the right kernelspec, its start, its end, its last words.

Runs on the bridge's event loop. Together with `bridge.headless.notebook` the one door to
jupyter_client: whatever it raises becomes a `NotebookError`.
"""

import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.session import Session

from mcp_notebook.bridge.headless.kernel_folder import make_kernel_folder
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings import Settings

_SHUTDOWN_WAIT = 1.0
"""Seconds for a kernel to end: half of them after the request, half after SIGTERM, then SIGKILL."""
_SHUTDOWN_LIMIT = 5.0
"""Seconds after which the bridge no longer waits for a kernel's end."""
_NO_HISTORY = "--HistoryManager.enabled=False"
"""The user did not type the cells that a bridge runs: they do not belong in the history."""
_MAX_LOG_TAIL = 2_000
"""Characters of a kernel's log in an error message."""
_FIRST_INTERVAL = 0.01
"""Seconds between the first two checks whether a kernel's process still runs..."""
_LONGEST_INTERVAL = 0.5
"""...and between later ones."""


@dataclass(frozen=True)
class KernelProcess:
    """A kernel process and our conversation with it."""

    manager: AsyncKernelManager
    client: AsyncKernelClient
    log: Path
    """What the process itself wrote, without the output of cells."""

    async def wait_for_end(self) -> str:
        """Wait until the process has ended, and return how: "ended with exit status 3"."""
        interval = _FIRST_INTERVAL
        while await self.manager.is_alive():
            await anyio.sleep(interval)
            interval = min(2 * interval, _LONGEST_INTERVAL)
        return self._describe_end()

    def describe_death(self) -> str:
        """Return how the process ended, and the end of its log, as sentences."""
        log = self.log.read_text(encoding="utf-8", errors="replace").strip()[-_MAX_LOG_TAIL:]
        return f"Its process {self._describe_end()}." + (f" It wrote:\n{log}" if log else "")

    def _describe_end(self) -> str:
        process = getattr(self.manager.provisioner, "process", None)
        return _describe_status(None if process is None else process.poll())


def make_silent_logger() -> logging.Logger:
    """Return a logger that writes nothing: what Jupyter's parts log there, they raise as well."""
    logger = logging.getLogger("mcp_notebook.headless.jupyter")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def check_kernel_name(name: str, path: Path) -> None:
    """Check that a kernelspec exists and is for Python.

    Args:
        name: Of the kernelspec.
        path: The notebook that asks for it.

    Raises:
        NotebookError: It does not exist, or is for another language.
    """
    specs = KernelSpecManager(log=make_silent_logger())
    try:
        spec = specs.get_kernel_spec(name)
    except NoSuchKernel:
        names = ", ".join(sorted(specs.find_kernel_specs())) or "none: `pip install ipykernel`"
        raise NotebookError(
            f"{path.name} needs the kernel {name!r}, which is not installed here. Installed: "
            f"{names}. Install it, or choose another kernel for the notebook in Jupyter and save."
        ) from None
    if spec.language.lower() != "python":
        raise NotebookError(
            f"{path.name} uses the kernel {name!r}, which is for {spec.language}. Only Python "
            "notebooks can offer tools."
        )


@asynccontextmanager
async def run_kernel(
    name: str, path: Path, env: dict[str, str], settings: Settings
) -> AsyncIterator[KernelProcess]:
    """Run a notebook's kernel for the block, and end it within bounds.

    Args:
        name: Of the kernelspec.
        path: The notebook; the kernel runs in its folder.
        env: The kernel's environment.
        settings: How long it may take to start.

    Yields:
        The kernel, when it answers.

    Raises:
        NotebookError: It cannot be started, or does not answer.
    """
    with make_kernel_folder() as folder:
        manager = _make_manager(name, folder)
        try:
            kernel = await _start(manager, path, env, settings)
            try:
                yield kernel
            finally:
                kernel.client.stop_channels()
        finally:
            await _end(manager)


def _make_manager(name: str, folder: Path) -> AsyncKernelManager:
    manager = AsyncKernelManager(
        kernel_name=name, connection_file=str(folder / "kernel.json"), log=make_silent_logger()
    )
    # Ports of 127.0.0.1 are open to all users of the machine, and the messages are not encrypted.
    if sys.platform != "win32":
        manager.transport = "ipc"
        manager.ip = str(folder / "k")
    manager.shutdown_wait_time = _SHUTDOWN_WAIT
    return manager


async def _start(
    manager: AsyncKernelManager, path: Path, env: dict[str, str], settings: Settings
) -> KernelProcess:
    log = Path(manager.connection_file).with_suffix(".log")
    try:
        with log.open("wb") as file:
            await manager.start_kernel(
                extra_arguments=[_NO_HISTORY],
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
    kernel = KernelProcess(manager, client, log)
    client.start_channels(stdin=False)  # so that input() fails instead of waiting forever
    try:
        await _wait_until_ready(kernel, path, settings)
    except BaseException:
        client.stop_channels()
        raise
    return kernel


async def _wait_until_ready(kernel: KernelProcess, path: Path, settings: Settings) -> None:
    name = kernel.manager.kernel_name
    try:
        await kernel.client.wait_for_ready(timeout=settings.start_timeout)
    except RuntimeError:
        if await kernel.manager.is_alive():
            raise NotebookError(
                f"The kernel {name!r} of {path.name} did not answer within "
                f"{settings.start_timeout:g} s. MCP_NOTEBOOK_START_TIMEOUT sets the limit."
            ) from None
        death = kernel.describe_death()
        missing = "No module named ipykernel" in death
        step = " Install ipykernel in its environment: `pip install ipykernel`." if missing else ""
        raise NotebookError(
            f"The kernel {name!r} of {path.name} ended while starting.{step} {death}"
        ) from None


async def _end(manager: AsyncKernelManager) -> None:
    """End the kernel's process within bounds, even if this task is cancelled."""
    with anyio.move_on_after(_SHUTDOWN_LIMIT, shield=True):
        if manager.has_kernel:
            await manager.shutdown_kernel()
        else:
            await manager.cleanup_resources()


def _describe_status(status: int | None) -> str:
    """Return how a process ended, as a part of a sentence."""
    if status is None:
        return "does not answer"
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a signal without a name
        name = f"signal {-status}"
    return f"was killed by {name}" + (" (out of memory, perhaps)" if name == "SIGKILL" else "")
