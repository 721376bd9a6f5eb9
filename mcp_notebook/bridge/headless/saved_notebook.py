"""Replaces a served notebook when its file is saved with changed code.

Runs on the bridge's event loop. The new version gets the calls once its kernel has run the cells;
the previous one ends some time after its last call (`ServedNotebook.retire`). If the new version
cannot be started, the previous one continues; saving the same code again is another attempt. A
kernel that dies is replaced by one with the same version, whatever the file contains by then.
"""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.to_thread

from mcp_notebook.bridge.headless.notebook_code import hash_code, look_at
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.errors import LinkError, NotebookError, UntrustedNotebook
from mcp_notebook.text.terminal import print_note

if TYPE_CHECKING:
    from mcp_notebook.bridge.headless.notebook import Version

LOOK_INTERVAL = 0.5
"""Seconds between two checks whether the file was saved; network file systems send no events."""


class SavedNotebook:
    """Serves a notebook as it was saved last.

    Args:
        notebook: The notebook as it is at the start.
        look_interval: Seconds between two checks whether the file was saved.
    """

    def __init__(self, notebook: ServedNotebook, *, look_interval: float = LOOK_INTERVAL) -> None:
        self._look_interval = look_interval
        self._path = notebook.path
        self._current = notebook
        """The version that gets the calls."""
        self._is_served = True
        """Whether that has not been given up."""
        self._next: str | None = None
        """The digest of the code that is being started."""
        self._tasks: anyio.abc.TaskGroup

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> str:
        """Serve the notebook forever; started when its tools are listed.

        Raises:
            ExceptionGroup: With the error if the first start failed; see `ServedNotebook.run`.
        """
        async with anyio.create_task_group() as self._tasks:
            await self._tasks.start(self._keep, self._current)
            task_status.started()
            start = anyio.CancelScope()
            async for version in _watch(self._path, self._tell_failure, self._look_interval):
                code = hash_code(describe_code(version[1]))
                if code == self._next:
                    continue
                start.cancel()  # of a version that is out of date before it serves
                if self._is_served and code == self._current.ran:
                    if self._next is not None:
                        print_note(
                            f"{self._path.name} was saved with the code that is already served"
                        )
                    self._next = None
                    continue
                self._next, start = code, anyio.CancelScope()
                self._tasks.start_soon(self._replace, version, code, start)
        raise AssertionError("the file is watched forever")

    async def _keep(
        self,
        notebook: ServedNotebook,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        reason = await notebook.run(task_status=task_status)
        if not notebook.is_retired:
            self._is_served = False
            print_note(reason)

    async def _replace(self, version: "Version", code: str, scope: anyio.CancelScope) -> None:
        """Replace the notebook, if the new version can be started."""
        with scope:
            print_note(f"{self._path.name} was saved and is being run")
            new = self._current.make_successor(version)
            try:
                start = partial(self._tasks.start, self._keep, new)
                await self._current.restarts.start_when_trusted(start, self._tell_distrust)
            except (NotebookError, LinkError, OSError) as error:  # OSError: a full disk
                self._tell_failure(error)
            else:
                self._current, self._is_served = new, True
                print_note(f"{self._path.name} is served as it was saved")
            if self._next == code:
                self._next = None

    def _tell_distrust(self, error: UntrustedNotebook) -> None:
        self._tell_failure(error)
        self._next = None  # saving it with outputs, when it is trusted, is another attempt

    def _tell_failure(self, error: NotebookError | LinkError | OSError) -> None:
        """Print why the saved version is not served."""
        served = "still served with its previous code"
        state = served if self._is_served else "still not served"
        print_note(f"{self._path.name} is {state}. {error}")


async def _watch(
    path: Path, tell_failure: Callable[[NotebookError], None], look_interval: float
) -> "AsyncIterator[Version]":
    """Yield the content of a file, now and after each save; never ends."""
    handled_look: object = None
    failed_look: object = ""
    while True:
        await anyio.sleep(look_interval)
        look = await anyio.to_thread.run_sync(look_at, path)
        if look == handled_look:
            continue
        try:
            version = await anyio.to_thread.run_sync(read_notebook, path)
        except NotebookError as error:
            if look == failed_look:  # it was not just half written
                tell_failure(error)
                handled_look = look
            failed_look = look
            continue
        handled_look = look
        yield version
