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
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from mcp_notebook import meta_keys
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.schema_changes import write_json
from mcp_notebook.lock.tool_changes import Change, compare_entries
from mcp_notebook.settings.shared_files import replace_file
from mcp_notebook.wire import messages

Key: TypeAlias = tuple[str, str]
"""What something is, one of `_KINDS`, and its name."""
Entries: TypeAlias = Mapping[Key, dict[str, Any]]
_ANSWERS = "answers"
"""The member of an entry that is not declared, but seen."""
_KINDS = ("tool", "prompt", "resource", "skill")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Lock(Struct, frozen=True):
    """What a notebook's tools were when they were locked."""

    locked: str
    """The day on which its contents last changed: ``2026-11-28``."""
    entries: Entries
    """What each tool, prompt, resource and skill was."""

    @property
    def day(self) -> str:
        """The day in words: ``28 November 2026``."""
        try:
            day = dt.date.fromisoformat(self.locked)
        except ValueError:
            return self.locked
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    def compare(self, now: Entries) -> list[Change]:
        """Return what has changed since, also what was added and removed."""
        keys = dict.fromkeys((*now, *self.entries))
        return [change for key in keys for change in self._compare(key, now.get(key))]

    def find_changes(self, info: messages.ToolInfo) -> list[Change]:
        """Return what has changed in one declaration since."""
        return self._compare(find_key(info), describe(info))

    def _compare(self, key: Key, now: dict[str, Any] | None) -> list[Change]:
        try:
            return compare_entries(*key, self.entries.get(key), now)
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
            # A person may have edited it.
            return [Change(*key, "breaking", "its entry in the lock is damaged")]


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    """The form of the file."""

    locked: str
    format: Literal[1] = 1
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    prompts: dict[str, dict[str, Any]] = field(default_factory=dict)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    skills: dict[str, dict[str, Any]] = field(default_factory=dict)


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
"""Not from `strftime`, whose words depend on the locale."""


def find_path(notebook: Path) -> Path:
    """Return the path of a notebook's lock."""
    return notebook.with_suffix(".tools.lock")


def find_key(info: messages.ToolInfo) -> Key:
    """Return what a declaration is in a lock, and its name."""
    return (info.kind if info.text is None else "skill"), info.name


def describe(info: messages.ToolInfo, answers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the entry of a tool, prompt, resource or skill.

    Args:
        info: The kernel's description of it.
        answers: The form of the answer to each example, by its arguments as JSON.
    """
    text = None if info.text is None else _hash(info.text)
    entry = {
        "title": info.title,
        "description": info.description,
        "inputSchema": info.input_schema if info.text is None else None,
        "outputSchema": info.output_schema,
        "annotations": {key: info.annotations[key] for key in _HINTS if key in info.annotations}
        if info.annotations
        else None,
        "confirm": bool((info.meta or {}).get(meta_keys.CONFIRM)),
        "requires": sorted(info.requires),
        "task": info.task,
        "uri": info.uri,
        "mimeType": info.mime_type,
        "text": text,
    }
    found: dict[str, Any] = {key: value for key, value in entry.items() if value}
    found["digest"] = _hash(write_json(found))
    if answers:
        found[_ANSWERS] = dict(answers)
    return found


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def read_lock(path: Path) -> Lock | None:
    """Return a lock; None if there is none.

    Raises:
        NotebookError: It cannot be read.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise NotebookError(
            f"The lock {path.name} cannot be read: {error}. `mcp-notebook check NOTEBOOK --lock` "
            "writes a new one."
        ) from None
    entries = {
        (kind, name): entry for kind in _KINDS for name, entry in getattr(file, f"{kind}s").items()
    }
    return Lock(file.locked, entries)


def write_lock(path: Path, entries: Entries, before: Lock | None) -> Lock:
    """Write a lock, atomically, and return it. If nothing has changed, the file stays as it is.

    Forms of answers that are not known now are kept: not every check calls all tools.

    Args:
        path: The file.
        entries: What each tool, prompt, resource and skill is.
        before: The lock that it replaces.

    Raises:
        OSError: It cannot be written.
    """
    known = {} if before is None else before.entries
    entries = {
        key: {name: seen for name, seen in known.get(key, {}).items() if name == _ANSWERS} | entry
        for key, entry in entries.items()
    }
    if before is not None and _list(before.entries) == _list(entries):
        return before
    lock = Lock(dt.datetime.now().astimezone().date().isoformat(), entries)
    content: dict[str, Any] = {"format": 1, "locked": lock.locked}
    for (kind, name), entry in entries.items():
        content.setdefault(f"{kind}s", {})[name] = entry
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    replace_file(path, f"{text.encode(errors='replace').decode()}\n")
    return lock


def _list(entries: Entries) -> list[str]:
    return sorted(write_json([*key, entry]) for key, entry in entries.items())
