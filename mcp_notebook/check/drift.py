"""What a notebook offers now beside its lock, and the form of its answers.

Pure, apart from reading the lock. The form of an answer is its kinds of blocks, the columns of a
table, and the structure of data. Values are left out, and what depends on them as far as it can be
told: whole numbers are numbers, rows are one item, and keys that are no names (dates, places) are
one property.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_notebook.check.subject import Subject
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.lock_file import Entries, Lock, describe, find_path, read_lock
from mcp_notebook.lock.tool_changes import UNKNOWN, Change

_HEADING = re.compile(r"\w+: [\d,]+ rows? x [\d,]+ columns?; (.+)")
"""The first line of a table (`kernel.results.tables.table_text`)."""
_COLUMN = re.compile(r'("(?:[^"\\]|\\.)*"|.+?) ([\w.]+(?:\[.*?\]|\(.*?\))?)(?:, |$)')
_TYPES = {
    "number": re.compile(r"u?int|float|double|decimal", re.IGNORECASE),
    "truth value": re.compile(r"bool", re.IGNORECASE),
    "text": re.compile(r"object|str|utf8|large_string|categor|enum", re.IGNORECASE),
    "time": re.compile(r"date|time|duration|period", re.IGNORECASE),
}
"""How libraries, and their versions, begin their names of one type: pandas 3 has `str` where
pandas 2 had `object`, and a gap makes a column of integers one of floats."""
_WORDS = {bool: "truth value", int: "number", float: "number", str: "text"}


@dataclass(frozen=True)
class Drift:
    """What has changed since a notebook was locked."""

    entries: Entries
    """What the notebook offers now."""
    lock: Lock | None = None
    changes: Sequence[Change] = ()


def find_drift(subject: Subject) -> Drift:
    """Compare a notebook, all of whose cells have run, with its lock, if it has one."""
    forms: dict[str, dict[str, Any]] = {}
    for answer in subject.answers:
        if answer.era == "modern" and not answer.is_error and answer.result:
            example = json.dumps(answer.arguments, sort_keys=True)
            forms.setdefault(answer.tool, {})[example] = describe_answer(answer.result)
    entries = {tool.name: describe(tool.info, forms.get(tool.name)) for tool in subject.tools}
    if not find_path(subject.notebook).exists():
        return Drift(entries)
    try:
        lock = read_lock(subject.notebook)
    except NotebookError as error:
        return Drift(entries, changes=[Change("(lock)", "breaking", str(error))])
    return Drift(entries, lock, lock.compare(entries))


def describe_answer(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the form of a ``CallToolResult``: its blocks, columns and values, and their types."""
    types: dict[str, set[str]] = {}
    data = result.get("structuredContent")
    for block in result.get("content", ()):
        types[f"block {block['type']}"] = {block.get("mimeType", block["type"])}
        if block["type"] == "text":
            if heading := _HEADING.match(block["text"]):
                for name, dtype in _COLUMN.findall(heading[1]):
                    types[f"column {name}"] = {_name_type(dtype)}
            elif data is None:
                data = _read_data(block["text"])
    for path, word in () if data is None else _walk(data, "value "):
        types.setdefault(path, set()).add(word)
    return {name: " or ".join(sorted(words - {UNKNOWN} or words)) for name, words in types.items()}


def _name_type(dtype: str) -> str:
    return next((name for name, begin in _TYPES.items() if begin.match(dtype)), dtype)


def _read_data(text: str) -> Any:
    """Return the object or list that a text is as JSON; None if it is another text."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def _walk(data: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the type of each value: ``.days[].mm``, "number"."""
    if isinstance(data, dict) and data:
        has_names = all(key.isidentifier() for key in data)
        for key, value in data.items():
            yield from _walk(value, f"{path}.{key if has_names else '*'}")
    elif isinstance(data, list) and data:
        for value in data:
            yield from _walk(value, f"{path}[]")
    else:
        yield path, _WORDS.get(type(data), UNKNOWN)
