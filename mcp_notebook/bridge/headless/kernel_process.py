"""The process of a headless kernel: its kernelspec, its start, its end and its log.

Runs on the bridge's event loop. Together with `bridge.headless.notebook` the one door to
jupyter_client, whose exceptions become a `NotebookError`.
"""

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Self

import anyio

from mcp_notebook.bridge.headless import jupyter_client_import  # noqa: F401

# isort: split
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import (
    NATIVE_KERNEL_NAME,
    KernelSpec,
    KernelSpecManager,
    NoSuchKernel,
)
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.session import Session

from mcp_notebook.bridge.headless.kernel_folder import claim_folder, make_kernel_folder
from mcp_notebook.errors import KernelDied, NotebookError
from mcp_notebook.settings.settings import KERNEL_ID, Settings

_IPYKERNEL = ["-m", "ipykernel_launcher"]
"""How the usual kernelspec starts a kernel, perhaps after `-X` options of Python..."""
_LAUNCHER = Path(__file__).parents[2] / "kernel" / "headless_launcher.py"
"""...and what the bridge runs instead, if the kernel uses the bridge's own Python."""
_SHUTDOWN_WAIT = 1.0
"""Seconds to end a kernel: half of it after the request, half after SIGTERM, then SIGKILL."""
_SHUTDOWN_LIMIT = 5.0
"""Seconds after which the bridge no longer waits for a kernel's end."""
_NO_HISTORY = "--HistoryManager.enabled=False"
"""Cells that a bridge runs do not belong in the user's history."""
_MAX_LOG_TAIL = 2_000
"""Characters of a kernel's log in an error message."""
_FIRST_INTERVAL = 0.01
"""Seconds between the first two checks whether a kernel's process runs..."""
_LONGEST_INTERVAL = 0.5
"""...and between later ones."""
_ANSWER_WAIT, _OUTPUT_WAIT = 1.0, 0.2
"""Seconds to wait for a kernel's reply, and then for its outputs, before it is asked again."""


@dataclass(frozen=True)
class KernelProcess:
    """A kernel process and the client connected to it."""

    manager: AsyncKernelManager
    client: AsyncKernelClient
    log: Path
    """The stdout and stderr of the process, without the output of cells."""

    async def wait_for_end(self) -> str:
        """Wait until the process ends, and return how: "ended with exit status 3"."""
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
    """Return a logger that writes nothing; Jupyter's libraries also raise what they log."""
    logger = logging.getLogger("mcp_notebook.headless.jupyter")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def make_environment(path: Path, settings: Settings, kernel_id: str) -> dict[str, str]:
    """Return an environment in which the kernel publishes a record with this id."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_NOTEBOOK")}
    env |= settings.environment()
    env.pop("MCP_NOTEBOOK_TOKEN", None)  # a notebook may print its environment
    return env | {KERNEL_ID: kernel_id, "JPY_SESSION_NAME": str(path)}


def choose_kernel(name: str, path: Path, language: str = "") -> tuple[str, str]:
    """Choose the kernelspec for a notebook: the one that it names, or another Python kernel.

    Args:
        name: The kernelspec that the notebook names.
        path: The notebook.
        language: The notebook's language; empty if it does not say.

    Returns:
        The name of an installed kernelspec, and a note if it is another one.

    Raises:
        NotebookError: The kernel is not for Python, or is missing and cannot be replaced.
    """
    specs = KernelSpecManager(log=make_silent_logger())
    note = ""
    try:
        spec = specs.get_kernel_spec(name)
    except NoSuchKernel:
        substitute = _find_python_kernel(specs) if language.lower() == "python" else None
        if substitute is None:
            names = ", ".join(sorted(specs.find_kernel_specs())) or "none: `pip install ipykernel`"
            raise NotebookError(
                f"{path.name} needs the kernel {name!r}, which is not installed here. Installed: "
                f"{names}. Install it, or choose another kernel for the notebook in Jupyter and "
                "save."
            ) from None
        spec = specs.get_kernel_spec(substitute)
        note = (
            f"{path.name} was saved with the kernel {name!r}, which is not installed here. It runs "
            f"in {substitute!r} instead ({spec.argv[0]})."
        )
        name = substitute
    if spec.language.lower() != "python":
        raise NotebookError(
            f"{path.name} uses the kernel {name!r}, which is for {spec.language}. Only Python "
            "notebooks can offer tools."
        )
    return name, note


def _find_python_kernel(specs: KernelSpecManager) -> str | None:
    """Return the name of Jupyter's default kernel, or of the only Python kernel."""
    names = [
        name
        for name, found in specs.get_all_specs().items()
        if found["spec"]["language"].lower() == "python"
    ]
    if NATIVE_KERNEL_NAME in names:
        return NATIVE_KERNEL_NAME
    return names[0] if len(names) == 1 else None


class KernelLaunch:
    """A kernel's process, from its start to its end.

    An async context manager. The process starts when it is first entered, and ends when it is first
    left, so that a process that was started early can be passed to `run_kernel`.

    Args:
        name: The kernelspec's name.
        path: The notebook; the kernel runs in its folder.
        env: The kernel's environment.
        python: The Python that runs the kernel; None: what the kernelspec says.
    """

    def __init__(
        self, name: str, path: Path, env: dict[str, str], python: Path | None = None
    ) -> None:
        self.name = name
        self.path = path
        self._env = env
        self._python = python
        self._is_started = False
        self._end = AsyncExitStack()
        self.manager: AsyncKernelManager
        """The process's manager; set by the start."""
        self.log: Path
        """The file with the process's output; set by the start."""

    async def __aenter__(self) -> Self:
        """Start the process, unless it was started before.

        Raises:
            NotebookError: It cannot be started.
        """
        if not self._is_started:
            self._is_started = True
            try:
                await self._start()
            except OSError as error:  # a full disk
                raise self._explain_failure(error) from error
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.end()

    async def end(self) -> None:
        """End the process, unless it was ended before."""
        await self._end.aclose()

    async def _start(self) -> None:
        """Start the process in a folder of its own, which is removed when it ends."""
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(make_kernel_folder())
            self.manager = _make_manager(self.name, folder, self._python)
            self.log = folder / "kernel.log"
            stack.push_async_callback(_end, self.manager)
            await self._start_process()
            claim_folder(folder)
            self._end = stack.pop_all()

    async def _start_process(self) -> None:
        try:
            with self.log.open("wb") as file:
                await self.manager.start_kernel(
                    extra_arguments=[_NO_HISTORY],
                    env=self._env,
                    cwd=str(self.path.parent),
                    stdin=subprocess.DEVNULL,
                    # Not our own stdout, which may carry the protocol.
                    stdout=file,
                    stderr=file,
                )
        except Exception as error:
            raise self._explain_failure(error) from error

    def _explain_failure(self, error: Exception) -> NotebookError:
        return NotebookError(
            f"The kernel {self.name!r} of {self.path.name} cannot be started: {error}."
        )


@asynccontextmanager
async def run_kernel(launch: KernelLaunch, settings: Settings) -> AsyncIterator[KernelProcess]:
    """Run a notebook's kernel for the block, and end it.

    Args:
        launch: The kernel's process, which may have been started already.
        settings: How long the kernel may take to answer.

    Yields:
        The kernel, once it answers.

    Raises:
        NotebookError: It cannot be started, or does not answer.
    """
    async with launch:
        of_manager = launch.manager.session
        # A session of its own: clients that share a session receive each other's replies.
        session = Session(key=of_manager.key, signature_scheme=of_manager.signature_scheme)
        client: AsyncKernelClient = launch.manager.client(session=session)
        kernel = KernelProcess(launch.manager, client, launch.log)
        # Without stdin, input() fails instead of waiting forever. The heartbeat's thread fails if
        # it is stopped while it starts; the process itself is watched instead.
        client.start_channels(stdin=False, hb=False)
        try:
            await _wait_until_ready(kernel, launch.path, settings)
            yield kernel
        finally:
            client.stop_channels()


class _KernelManager(AsyncKernelManager):
    """Starts kernels of the bridge's own Python with `kernel.headless_launcher`."""

    python: Path | None = None
    """The Python of a notebook's own environment, which has no kernelspec."""

    @property
    def kernel_spec(self) -> KernelSpec | None:
        if self.python is None:
            return super().kernel_spec
        argv = [str(self.python), *_IPYKERNEL, "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name=self.kernel_name, language="python")

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        program, *words = super().format_kernel_cmd(extra_arguments)
        first = next((n for n, word in enumerate(words) if not word.startswith("-X")), 0)
        if program == sys.executable and words[first : first + 2] == _IPYKERNEL:
            words[first : first + 2] = [str(_LAUNCHER)]
        return [program, *words]


def _make_manager(name: str, folder: Path, python: Path | None) -> AsyncKernelManager:
    manager = _KernelManager(
        kernel_name=name, connection_file=str(folder / "kernel.json"), log=make_silent_logger()
    )
    manager.python = python
    # Ports of 127.0.0.1 are open to all users of the machine, and the messages are not encrypted.
    if sys.platform != "win32":
        manager.transport = "ipc"
        manager.ip = str(folder / "k")
    manager.shutdown_wait_time = _SHUTDOWN_WAIT
    return manager


async def _wait_until_ready(kernel: KernelProcess, path: Path, settings: Settings) -> None:
    try:
        with anyio.fail_after(settings.start_timeout):
            while not await _answers(kernel.client):
                if not await kernel.manager.is_alive():
                    raise _explain_death(kernel, path)
    except TimeoutError:
        raise NotebookError(
            f"The kernel {kernel.manager.kernel_name!r} of {path.name} did not answer within "
            f"{settings.start_timeout:g} s. MCP_NOTEBOOK_START_TIMEOUT sets the limit."
        ) from None


def _explain_death(kernel: KernelProcess, path: Path) -> KernelDied:
    name, death = kernel.manager.kernel_name, kernel.describe_death()
    is_missing = re.search(r"No module named '?ipykernel", death)
    step = " Install ipykernel in its environment: `pip install ipykernel`." if is_missing else ""
    return KernelDied(f"The kernel {name!r} of {path.name} ended while starting.{step} {death}")


async def _answers(client: AsyncKernelClient) -> bool:
    """Return whether the kernel answers a request, with a reply and outputs."""
    # The client's own `wait_for_ready` takes 0.2 s longer: it waits until no more outputs come.
    client.kernel_info()
    try:
        await client.get_shell_msg(timeout=_ANSWER_WAIT)
        await client.get_iopub_msg(timeout=_OUTPUT_WAIT)
    except Empty:
        return False
    return True


async def _end(manager: AsyncKernelManager) -> None:
    """End the kernel's process within `_SHUTDOWN_LIMIT`, even if this task is cancelled."""
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
