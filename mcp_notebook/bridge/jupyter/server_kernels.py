"""The live kernels of one Jupyter Server, as they start and end.

Runs on the bridge's event loop. The server sends the Jupyter ids of its kernels; the records say
how to reach those that have loaded the extension. Kernels of the user's other servers and editors
are left out.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path, PurePath

import anyio
import anyio.to_thread

from mcp_notebook.discovery.records import Record, list_live_records, watch_records


class ServerKernels:
    """The records of a server's kernels; belongs to the event loop.

    Args:
        folder: The folder with the records of all live kernels.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids: frozenset[str] | None = None
        """The Jupyter ids of the server's kernels; None until the server has sent them."""
        self._all: tuple[Record, ...] | None = None
        """The records of all live kernels; None until the folder has been read."""
        self._change = anyio.Event()

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the server's kernels now, oldest first."""
        return tuple(record for record in self._all or () if record.jupyter_id in (self._ids or ()))

    def has_any(self, ids: Iterable[str | None]) -> bool:
        """Return whether any of these kernels has not ended; one that is restarted keeps its id."""
        return not (self._ids or frozenset()).isdisjoint(ids)

    def take_line(self, line: str) -> None:
        """Read a line of the server: the ids of all its kernels, as a JSON list."""
        self._ids = frozenset(json.loads(line))
        self._note_change()

    async def refresh(self) -> None:
        """Read the folder now, to find a notebook that was just opened."""
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
        """Yield the served records, now and after each change; never ends."""
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
    """Return whether a name, or the end of a path, refers to a kernel's notebook."""
    meant = PurePath(notebook.removesuffix(".ipynb")).parts
    folders = PurePath(record.notebook).parent.parts if record.notebook else ()
    return bool(meant) and (*folders, record.name)[-len(meant) :] == meant
