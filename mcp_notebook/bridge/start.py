"""The way into a bridge: the kernel of a headless notebook starts while the bridge is imported.

Runs on the bridge's event loop, which waits for nothing else yet.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_notebook.lean_imports import frozen_heap
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note

if TYPE_CHECKING:
    from mcp_notebook.bridge.headless.early_kernel import EarlyKernel


async def start_stdio(settings: Settings, notebooks: Sequence[Path] = ()) -> None:
    """Serve as `app.run_stdio`."""
    async with _launch_first(settings, notebooks) as early:
        with frozen_heap():
            from mcp_notebook.bridge.app import run_stdio  # noqa: PLC0415 - when the kernel starts

        await run_stdio(settings, notebooks, early)


async def start_http(
    settings: Settings, notebooks: Sequence[Path] = (), *, background: bool = False
) -> None:
    """Serve as `http_app.run_http`."""
    async with _launch_first(settings, notebooks) as early:
        if early is not None:
            print_note(f"Starting the kernel of {notebooks[0].name}")
        with frozen_heap():
            from mcp_notebook.bridge.http_app import run_http  # noqa: PLC0415 - when the kernel starts

        await run_http(settings, notebooks, early, background=background)


@asynccontextmanager
async def _launch_first(
    settings: Settings, notebooks: Sequence[Path]
) -> AsyncIterator["EarlyKernel | None"]:
    """Start the kernel of the first notebook, unless it starts on call."""
    if not notebooks or notebooks[0].expanduser().is_dir():
        yield None
        return
    # A bridge for live notebooks, or for a folder, starts no kernel.
    from mcp_notebook.bridge.headless.early_kernel import launch_early  # noqa: PLC0415

    async with launch_early(notebooks[0], settings) as kernel:
        yield kernel
