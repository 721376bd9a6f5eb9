"""Starts a notebook's kernel while the bridge is still loading its libraries.

Runs on the bridge's event loop, before the bridge exists. A kernel takes about as long to start as
a bridge. No cell runs in it before the notebook has been read and checked as usual; problems are
reported then.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.bridge.headless.kernel_process import (
    KernelLaunch,
    choose_kernel,
    make_environment,
)
from mcp_notebook.bridge.headless.notebook_code import read_code
from mcp_notebook.bridge.headless.script_environment import BLOCK_START
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.settings import Settings


@dataclass(frozen=True)
class EarlyKernel:
    """A kernel that was started early, for a notebook that will be run."""

    kernel_id: str
    """Id of the record that it will publish."""
    launch: KernelLaunch


@asynccontextmanager
async def launch_early(path: Path, settings: Settings) -> AsyncIterator[EarlyKernel | None]:
    """Start a notebook's kernel, which ends with the block at the latest.

    Args:
        path: The notebook.
        settings: For the kernel. With `trusted_only` no kernel is started, because Python may run
            files in the folder of an untrusted notebook; with `locked`, it may have no lock.

    Yields:
        The kernel, or None if the bridge must check the notebook first.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: ASYNC240, PTH100 - touches no disk
    async with AsyncExitStack() as stack:
        kernel = None
        if not (settings.trusted_only or settings.locked):
            try:
                name, _ = choose_kernel(_read_kernel_name(path, settings), path)
                kernel_id = make_id()
                env = make_environment(path, settings, kernel_id)
                launch = await stack.enter_async_context(KernelLaunch(name, path, env))
                kernel = EarlyKernel(kernel_id, launch)
            except NotebookError:
                pass
        yield kernel


def _read_kernel_name(path: Path, settings: Settings) -> str:
    """Return the name of a notebook's kernelspec.

    Raises:
        NotebookError: The file is not a plain notebook of the current format, or its kernel may
            run in an environment of its own.
    """
    try:
        if path.is_file():  # a pipe can be read once only
            code = read_code(path)
            sources = [source for source, _ in code.cells] if settings.own_environment else []
            if not any(BLOCK_START in source for source in sources):
                return code.kernel_name
    except OSError:
        pass
    raise NotebookError(f"{path} is not a plain notebook file of the current format.")
