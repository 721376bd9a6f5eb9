"""The lock of a notebook's tools: ``sales.tools.lock`` beside ``sales.ipynb``.

Pure, but for reading and writing the file. It is JSON in a stable order, and nothing in it depends
on the machine, on the versions of Python or of libraries, or on when it was written: but for
``locked``, the day on which something in it last changed. So the same notebook gives the same file.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

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
_DECLARED = (
    *("kind", "title", "description", "input_schema", "output_schema", "annotations", "requires"),
    *("task", "uri", "mime_type"),
)
_ANSWERS = "answers"
"""The member of an entry that is not declared, but seen."""


class Lock(Struct, frozen=True):
    """What a notebook's tools were when they were locked, as the file has it."""

    locked: dt.date
    """The day on which its contents last changed."""
    entries: dict[str, dict[str, Any]]
    format: Literal[1] = 1

    @property
    def day(self) -> str:
        """The day in words: ``28 Nov 2026``."""
        return f"{self.locked.day} {self.locked:%b %Y}"

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
    entry = {key: value for key in _DECLARED if (value := getattr(info, key))}
    if (info.meta or {}).get(meta_keys.CONFIRM):
        entry["confirm"] = True
    if info.text is not None:
        entry |= {"kind": "skill", "text": _hash(info.text)}
    entry["digest"] = _hash(write_json(entry))
    return entry | ({_ANSWERS: answers} if answers else {})


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def read_lock(notebook: Path) -> Lock:
    """Return a notebook's lock.

    Raises:
        NotebookError: There is none, or it cannot be read.
    """
    path = find_path(notebook)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Lock)
    except FileNotFoundError:
        reason = f"{notebook.name} has no lock"
    except (OSError, ValueError, RecursionError) as error:
        reason = f"The lock {path.name} cannot be read ({error})"
    raise NotebookError(f"{reason}: `mcp-notebook check {notebook.name} --lock` writes one.")


def write_lock(notebook: Path, entries: Entries, before: Lock | None = None) -> None:
    """Write a notebook's lock, atomically. Its day stays as it is if nothing has changed.

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
    now = {name: seen.get(name, {}) | entry for name, entry in entries.items()}
    if before is None or now != known:
        before = Lock(dt.datetime.now().astimezone().date(), now)
    try:
        content = msgspec.json.format(msgspec.json.encode(before, order="sorted"))
        replace_file(find_path(notebook), f"{content.decode()}\n")
    except (OSError, ValueError) as error:
        raise NotebookError(f"The lock cannot be written: {error}.") from None
