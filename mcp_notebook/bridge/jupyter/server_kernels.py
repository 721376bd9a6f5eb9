"""The live kernels of one Jupyter Server: which they are, as they come and go.

Runs on the bridge's event loop. The server says which kernels are its own, by their Jupyter ids;
the records say how to reach those that have loaded the extension. Kernels of other servers and
editors of the same user are left out.
"""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path, PurePath

import anyio
import anyio.to_thread

from mcp_notebook.discovery.records import Record, list_live_records, watch_records


class ServerKernels:
    """The records of a server's kernels; belongs to the event loop.

    Args:
        folder: Of the records of all live kernels.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids: frozenset[str] | None = None
        """None until the server has said which they are."""
        self._all: tuple[Record, ...] | None = None
        """Those of all live kernels; None until the folder has been read."""
        self._change = anyio.Event()

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the server's kernels now, oldest first."""
        return tuple(record for record in self._all or () if record.jupyter_id in (self._ids or ()))

    def take_line(self, line: str) -> None:
        """Take what the server says: the ids of all its kernels, as a list in JSON."""
        self._ids = frozenset(json.loads(line))
        self._note_change()

    async def refresh(self) -> None:
        """Read the folder now; a notebook may have come a moment ago."""
        while not self._is_known():
            await self._change.wait()
        self._all = await anyio.to_thread.run_sync(list_live_records, self._folder)
        self._note_change()

    async def watch_folder(self) -> None:
        """Follow the folder of records; runs forever."""
        async for records in watch_records(self._folder):
            self._all = records
            self._note_change()

    async def watch(self, is_served: Callable[[Record], bool]) -> AsyncIterator[tuple[Record, ...]]:
        """Yield those of the records that are served, now and after each change; never ends."""
        while True:
            change = self._change
            if self._is_known():
                yield tuple(filter(is_served, self.records))
            await change.wait()

    def _is_known(self) -> bool:
        return self._all is not None and self._ids is not None

    def _note_change(self) -> None:
        self._change.set()
        self._change = anyio.Event()


def is_of_notebook(record: Record, notebook: str) -> bool:
    """Return whether a kernel's notebook is meant by a name or the last parts of a path."""
    meant = PurePath(notebook.removesuffix(".ipynb")).parts
    folders = PurePath(record.notebook).parent.parts if record.notebook else ()
    return bool(meant) and (*folders, record.name)[-len(meant) :] == meant
