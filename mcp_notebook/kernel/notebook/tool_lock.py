"""The notebook's lock, for cards and the side panel: what differs from it, and locking again.

Runs on the kernel's main thread and on the link's. The file is read again when it has changed.
"""

from collections import Counter
from collections.abc import Iterable

from mcp_notebook.errors import NotebookError
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.lock import lock_file
from mcp_notebook.lock.lock_file import Lock
from mcp_notebook.lock.tool_changes import LEVELS, Change
from mcp_notebook.text.wording import count

_MAX_LISTED = 20
"""Changes of a tool that the side panel shows."""


class ToolLock:
    """The lock beside the notebook's file, if there is one.

    Args:
        file: The notebook's file.
    """

    def __init__(self, file: NotebookFile) -> None:
        self._file = file
        self._seen: tuple[object, Lock | None] = None, None
        """The file's state when it was last read, and what it had."""
        self._found: dict[str, tuple[Lock, object, list[Change]]] = {}
        """What was found of each tool, and of what: the side panel asks many times a second."""

    def describe(self, tool: DeclaredTool) -> list[str]:
        """Return how a tool differs from the lock: in a line, then change by change.

        Returns nothing if it does not, or is not locked.
        """
        lock = self._read()
        if lock is None or lock_file.find_key(tool.info) not in lock.entries:
            return []
        found = self._found.get(tool.name)
        if found is None or found[0] is not lock or found[1] is not tool.info:
            found = lock, tool.info, lock.find_changes(tool.info)
            self._found[tool.name] = found
        changes = sorted(found[2], key=lambda each: LEVELS.index(each.level))
        if not changes:
            return []
        first, more = changes[0], len(changes) - 1
        rest = f" ({count(more, 'more change')})" if more else ""
        line = f"Changed since it was locked on {lock.day}: {first.text}{rest}."
        return [line, *(f"{change.text}: {change.level}" for change in changes[:_MAX_LISTED])]

    def renew(self, tool: DeclaredTool) -> str:
        """Lock a tool as it is now, and return a sentence about it.

        Raises:
            NotebookError: The lock is gone, or cannot be read or written.
        """
        lock = self._read()
        path = self._file.path and lock_file.find_path(self._file.path)
        if path is None or lock is None:
            raise NotebookError("The lock is gone, or cannot be read.")
        entry = lock_file.describe(tool.info)
        try:
            lock_file.write_lock(path, {**lock.entries, lock_file.find_key(tool.info): entry}, lock)
        except OSError as error:
            raise NotebookError(f"{path} cannot be written: {error.strerror}.") from None
        return f"Locked {tool.name} as it is now, in {path.name}."

    def _read(self) -> Lock | None:
        if self._file.path is None:
            return None
        path = lock_file.find_path(self._file.path)
        try:
            status = path.stat()
            state = path, status.st_mtime_ns, status.st_size, status.st_ino
            if state != self._seen[0]:
                self._seen = state, lock_file.read_lock(path)
        except (OSError, ValueError, NotebookError):
            self._seen = None, None
        return self._seen[1]


def describe_calls(calls: Iterable[LoggedCall], tool: DeclaredTool) -> str:
    """Return who has called a tool since it was declared, as a sentence; empty if nobody has."""
    numbers = Counter(
        call.client_label
        for call in calls
        if call.tool == tool.name and call.client is not None and call.came >= tool.declared_at
    )
    words = [f"{client} called it {count(number, 'time')}" for client, number in numbers.items()]
    return f" {', '.join(words)} since." if words else ""
