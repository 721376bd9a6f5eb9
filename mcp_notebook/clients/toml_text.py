"""Changes one table of a TOML document, and nothing else.

Pure functions on strings, in the process of the command. A new table is added at the end; a table
is removed with its header. Libraries that preserve comments would also remove the comments before
the next header. `settings_text` checks the result.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from mcp_notebook.clients.client import Entry
from mcp_notebook.clients.rendering import render_toml_table

_HEADER = re.compile(r"[ \t]*\[.*\][ \t]*(?:#.*)?")
_NO_CONTENT = re.compile(r"[ \t]*(?:#.*)?")


def read_toml(text: str) -> Any:
    """Parse TOML.

    Raises:
        ValueError: The text is not valid; the message names the line.
    """
    return tomllib.loads(text)


def put_toml(text: str, section: str, name: str, entry: Entry) -> str:
    """Add an entry to a section, or replace it, and return the new text.

    Args:
        text: A valid document. If it has the section, that is a table.
        section: The table that holds the entries.
        name: The entry's name.
        entry: The entry.
    """
    end = _find_break(text)
    table = render_toml_table(section, name, entry).replace("\n", end)
    spans = list(_find_tables(text, section, name))
    if spans:
        start = spans[0][0]
        for first, last in reversed(spans):
            text = text[:first] + text[last:]
        return text[:start] + table + text[start:]
    if text and not text.endswith("\n"):
        text += end
    return text + (end if text.strip() else "") + table


def cut_toml(text: str, section: str, name: str) -> str:
    """Remove an entry that has its own table, and return the new text."""
    for first, last in reversed(list(_find_tables(text, section, name))):
        before = text[:first]
        # Also remove the empty line before it.
        if last == len(text) and before.endswith(("\n\n", "\r\n\r\n")):
            before = before[: -len(_find_break(text))]
        text = before + text[last:]
    return text


def _find_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _find_tables(text: str, section: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a table and its subtables, without the comments after them."""
    start = end = position = 0
    is_inside = False
    for line in text.splitlines(keepends=True):
        words = line.rstrip("\r\n")
        path = _parse_header(words) if _HEADER.fullmatch(words) else None
        if path is not None:
            if is_inside:
                yield start, end
            is_inside = path[:2] == (section, name)
            start = position
        position += len(line)
        if path is not None or not _NO_CONTENT.fullmatch(words):
            end = position
    if is_inside:
        yield start, end


def _parse_header(line: str) -> tuple[str, ...] | None:
    """Return the keys of a table header; None for other lines."""
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    path = []
    while value:
        value = value[0] if isinstance(value, list) else value
        (key,) = value or {"": None}
        path.append(key)
        value = value.get(key)
    return tuple(path)
