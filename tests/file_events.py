"""Waits for files that other processes make, by the events of the file system."""

from pathlib import Path

import anyio
from live import TIMEOUT
from watchfiles import awatch


async def appears(path: Path) -> None:
    """Wait until a file is there."""
    with anyio.fail_after(TIMEOUT):
        # The file may have come before the first event can.
        async for _ in awatch(path.parent, rust_timeout=100, yield_on_timeout=True):
            if path.exists():  # noqa: ASYNC240 - a test's own disk
                break
