"""The lock of a notebook's tools: ``sales.tools.lock`` beside ``sales.ipynb``.

Pure, but for reading and writing the file. It is JSON in a stable order, and nothing in it depends
on the machine, on the versions of Python or of libraries, or on when it was written: but for
``locked``, the day on which something in it last changed. So the same notebook gives the same file.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from mcp_notebook import meta_keys
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.schema_changes import write_json
from mcp_notebook.lock.tool_changes import Change, compare_entries
from mcp_notebook.settings.shared_files import replace_file
from mcp_notebook.wire import messages

Entries: TypeAlias = Mapping[str, dict[str, Any]]
"""What each tool, prompt, resource and skill is, by name: a notebook has one of a name."""
_FORMAT = 1
_ANSWERS = "answers"
"""The member of an entry that is not declared, but seen."""


class Lock(Struct, frozen=True):
    """What a notebook's tools were when they were locked, as the file has it."""

    locked: dt.date
    """The day on which its contents last changed."""
    entries: dict[str, dict[str, Any]]
    format: int = _FORMAT

    @property
    def day(self) -> str:
        """The day in words, whatever the locale: ``28 Nov 2026``."""
        _, month, day, _, year = self.locked.ctime().split()
        return f"{day} {month} {year}"

    def compare(self, now: Entries) -> list[Change]:
        """Return what has changed since, also what was added and removed."""
        names = dict.fromkeys((*now, *self.entries))
        pairs = ((name, self.entries.get(name), now.get(name)) for name in names)
        return [change for pair in pairs for change in compare_entries(*pair)]


def find_path(notebook: Path) -> Path:
    """Return the path of a notebook's lock."""
    return notebook.with_suffix(".tools.lock")


def describe(info: messages.ToolInfo, answers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the entry of a tool, prompt, resource or skill.

    Args:
        info: The kernel's description of it.
        answers: The form of the answer to each example, by its arguments as JSON.
    """
    entry = {
        "kind": info.kind if info.text is None else "skill",
        "title": info.title,
        "description": info.description,
        "inputSchema": info.input_schema if info.text is None else None,
        "outputSchema": info.output_schema,
        "annotations": info.annotations,
        "confirm": (info.meta or {}).get(meta_keys.CONFIRM),
        "requires": sorted(info.requires),
        "task": info.task,
        "uri": info.uri,
        "mimeType": info.mime_type,
        "text": info.text and _hash(info.text),
    }
    found = {key: value for key, value in entry.items() if value}
    found["digest"] = _hash(write_json(found))
    return found | ({_ANSWERS: dict(answers)} if answers else {})


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def read_lock(notebook: Path) -> Lock | None:
    """Return a notebook's lock; None if there is none.

    Raises:
        NotebookError: It cannot be read.
    """
    try:
        lock = msgspec.json.decode(find_path(notebook).read_bytes(), type=Lock)
        if lock.format == _FORMAT:
            return lock
        reason = f"its format {lock.format} is of a newer mcp-notebook"
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
    raise NotebookError(
        f"The lock {find_path(notebook).name} cannot be read: {reason}. "
        f"`mcp-notebook check {notebook.name} --lock` writes a new one."
    )


def write_lock(notebook: Path, entries: Entries, before: Lock | None = None) -> None:
    """Write a notebook's lock, atomically. If nothing has changed, the file stays as it is.

    Forms of answers that are not known now are kept: not every check calls all tools.

    Args:
        notebook: The notebook.
        entries: What each tool, prompt, resource and skill is.
        before: The lock that it replaces, if it can be read.

    Raises:
        NotebookError: It cannot be written.
    """
    known = {} if before is None else before.entries
    seen = {name: {_ANSWERS: old[_ANSWERS]} for name, old in known.items() if _ANSWERS in old}
    entries = {name: seen.get(name, {}) | entry for name, entry in entries.items()}
    if known and write_json(known) == write_json(entries):
        return
    path, lock = find_path(notebook), Lock(dt.datetime.now().astimezone().date(), entries)
    content = msgspec.to_builtins(lock)
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    try:
        replace_file(path, f"{text.encode(errors='replace').decode()}\n")
    except OSError as error:
        raise NotebookError(f"{path} cannot be written: {error.strerror}.") from None
