"""What a notebook offers now beside its lock.

Pure, apart from reading and writing the lock.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_notebook.check.answer_forms import describe_answer
from mcp_notebook.check.subject import Subject
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock import lock_file
from mcp_notebook.lock.lock_file import Entries, Lock
from mcp_notebook.lock.tool_changes import Change


@dataclass(frozen=True)
class Drift:
    """What has changed since a notebook was locked."""

    path: Path
    """The lock's."""
    entries: Entries
    """What the notebook offers now."""
    lock: Lock | None = None
    changes: Sequence[Change] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing needs a person's eye."""
        return all(change.level == "compatible" for change in self.changes)

    def write(self) -> None:
        """Write the lock.

        Raises:
            NotebookError: It cannot be written.
        """
        try:
            lock_file.write_lock(self.path, self.entries, self.lock)
        except OSError as error:
            raise NotebookError(f"{self.path} cannot be written: {error.strerror}.") from None


def find_drift(subject: Subject, *, is_replaced: bool = False, is_whole: bool = True) -> Drift:
    """Compare a notebook with its lock, if it has one.

    Args:
        subject: The notebook.
        is_replaced: The lock will be replaced, so one that cannot be read counts as none.
        is_whole: All cells have run, so that what is not there is gone.

    Raises:
        NotebookError: The lock cannot be read.
    """
    path = lock_file.find_path(subject.notebook)
    entries = _describe_all(subject)
    try:
        lock = lock_file.read_lock(path)
    except NotebookError:
        if not is_replaced:
            raise
        lock = None
    changes = [] if lock is None else lock.compare(entries)
    if is_whole or lock is None:
        return Drift(path, entries, lock, changes)
    both = lock.entries.keys() & entries.keys()
    changes = [each for each in changes if (each.kind, each.name) in both]
    return Drift(path, entries, lock if changes else None, changes)


def _describe_all(subject: Subject) -> Entries:
    """Return the lock's entry of each tool, prompt, resource and skill of a notebook."""
    forms: dict[str, dict[str, Any]] = {}
    for answer in subject.answers:
        if answer.era == "modern" and not answer.is_error and answer.result:
            example = json.dumps(answer.arguments, sort_keys=True)
            forms.setdefault(answer.tool, {})[example] = describe_answer(answer.result)
    return {
        lock_file.find_key(tool.info): lock_file.describe(tool.info, forms.get(tool.name))
        for tool in subject.tools
    }
