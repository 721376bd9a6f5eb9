"""The form of an answer for the lock: kinds of blocks, columns of a table, structure of data.

Pure. Values are left out, and what depends on them as far as it can be told: whole numbers are
numbers, rows are one item, and keys that are no names (dates, places) are one property.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_notebook.lock.tool_changes import UNKNOWN

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


def describe_answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form of a ``CallToolResult``."""
    form: dict[str, Any] = {"blocks": []}
    data = result.get("structuredContent")
    for block in result.get("content", ()):
        kind = block["type"]
        word = f"{kind} ({block['mimeType']})" if "mimeType" in block else kind
        if word not in form["blocks"]:
            form["blocks"].append(word)
        if kind == "text":
            if columns := _read_columns(block["text"]):
                form["columns"] = columns
            elif data is None:
                data = _read_data(block["text"])
    if data is not None:
        types: dict[str, set[str]] = {}
        for path, word in _walk(data, ""):
            types.setdefault(path, set()).add(word)
        form["data"] = {
            path: " or ".join(sorted(words - {UNKNOWN} or words)) for path, words in types.items()
        }
    return form


def _read_columns(text: str) -> dict[str, str]:
    heading = _HEADING.match(text)
    found = _COLUMN.findall(heading[1]) if heading else ()
    return {name: _name_type(dtype) for name, dtype in found}


def _name_type(dtype: str) -> str:
    return next((name for name, begin in _TYPES.items() if begin.match(dtype)), dtype)


def _read_data(text: str) -> Any:
    """Return the object or list that a text is as JSON; None if it is another text."""
    try:
        data = json.loads(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None
    return data


def _walk(data: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the type of each value: ``days[].mm``, "number"."""
    if isinstance(data, dict) and data:
        has_names = all(key.isidentifier() for key in data)
        for key, value in data.items():
            yield from _walk(value, f"{path}.{key if has_names else '*'}".lstrip("."))
    elif isinstance(data, list) and data:
        for value in data:
            yield from _walk(value, f"{path}[]")
    else:
        yield path, _WORDS.get(type(data), UNKNOWN)
