"""Ways by which a worker tells a call that its function begins, how far it is, and what it logs.

Runs in the user's kernel, on the thread of the call; what the worker does is in `remote_context`.
"""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol


class WayBack(Protocol):
    """A way from a worker to the call that waits for it."""

    @property
    def address(self) -> tuple[str, ...]:
        """What the worker needs to know; it is pickled."""

    def receive(self) -> list[list[Any]]:
        """Return the messages that have come since the last time."""

    def close(self) -> None:
        """Receive nothing any more: the worker may see by that that nobody waits for it."""


class FileWay:
    """By a temporary file, to workers of this machine.

    Raises:
        OSError: The disk is full or read-only.
    """

    def __init__(self) -> None:
        descriptor, path = tempfile.mkstemp(prefix="mcp-notebook-call-")
        os.close(descriptor)
        self._path = Path(path)
        self._position = 0

    @property
    def address(self) -> tuple[str, ...]:
        """The file's path."""
        return ("file", str(self._path))

    def receive(self) -> list[list[Any]]:
        """Return the lines that were added since the last time."""
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._position)
            data, end, _ = file.read().rpartition(b"\n")
            self._position += len(data) + len(end)
            return [json.loads(line) for line in data.splitlines()]
        return []

    def close(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
