"""The notebook's lock, for cards and the side panel: what differs from it, and locking again.

Runs on the kernel's main thread and on the link's. The file is read again when it has changed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from mcp_notebook.errors import NotebookError
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.lock.lock_file import Lock, describe, find_path, read_lock, write_lock
from mcp_notebook.lock.tool_changes import Change, compare_entries
from mcp_notebook.text.wording import count


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
        """What differed of each tool, and from what: the side panel asks many times a second."""

    @property
    def _notebook(self) -> Path:
        return self._file.path or Path("NOTEBOOK")

    def describe(
        self, tool: DeclaredTool, list_calls: Callable[[], Iterable[LoggedCall]] = tuple
    ) -> list[str]:
        """Return how a tool differs from the lock: in a line, then change by change.

        Returns nothing if it does not, or is not locked.

        Args:
            tool: The tool.
            list_calls: Returns the calls, of which the line names those since it was declared.
        """
        lock = self._read()
        if lock is None or tool.name not in lock.entries:
            return []
        found = self._found.get(tool.name)
        if found is None or found[0] is not lock or found[1] is not tool.info:
            changes = compare_entries(tool.name, lock.entries[tool.name], describe(tool.info))
            found = self._found[tool.name] = lock, tool.info, changes
        changes = found[2]
        if not changes:
            return []
        rest = f" ({count(len(changes) - 1, 'more change')})" if changes[1:] else ""
        line = f"Changed since it was locked on {lock.day}: {changes[0].text}{rest}."
        numbers = Counter(
            call.client_label
            for call in list_calls()
            if call.tool == tool.name and call.client is not None and call.came >= tool.declared_at
        )
        calls = [f"{client} called it {count(n, 'time')} since." for client, n in numbers.items()]
        return [" ".join([line, *calls]), *(f"{each.text}: {each.level}" for each in changes)]

    def renew(self, tool: DeclaredTool) -> str:
        """Lock a tool as it is now, and return a sentence about it.

        Raises:
            NotebookError: The lock is gone, or cannot be read or written.
        """
        lock = read_lock(self._notebook)
        write_lock(self._notebook, {**lock.entries, tool.name: describe(tool.info)}, lock)
        return f"Locked {tool.name} as it is now, in {find_path(self._notebook).name}."

    def _read(self) -> Lock | None:
        try:
            status = find_path(self._notebook).stat()
            state = self._notebook, status.st_mtime_ns, status.st_size, status.st_ino
            if state != self._seen[0]:
                self._seen = state, read_lock(self._notebook)
        except (OSError, NotebookError):
            self._seen = None, None
        return self._seen[1]
