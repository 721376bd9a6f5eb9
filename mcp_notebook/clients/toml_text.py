"""Changes one table of a TOML document, and nothing else.

Pure functions on texts, in the process of the command. A table may stand anywhere in TOML, so that
one is added at the end and removed with its header. Libraries that keep comments count those before
the next header as part of the table before, and would remove them with it. That the result means
what it should is checked by `settings_text`.
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
    """Return what a text means.

    Raises:
        ValueError: It is not valid, with the line.
    """
    return tomllib.loads(text)


def put_toml(text: str, section: str, name: str, entry: Entry) -> str:
    """Return a text with an entry in a section, in the place of one that has the name.

    Args:
        text: A valid document, whose section is a table if it is there.
        section: The table that holds the entries.
        name: Of the entry.
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
    """Return a text without an entry, if it is a table of its own."""
    for first, last in reversed(list(_find_tables(text, section, name))):
        before = text[:first]
        # The empty line that set it apart from what is before.
        if last == len(text) and before.endswith(("\n\n", "\r\n\r\n")):
            before = before[: -len(_find_break(text))]
        text = before + text[last:]
    return text


def _find_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _find_tables(text: str, section: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield where a table and those within it begin and end, without the comments after them."""
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
    """Return the keys in a line that is a header of a table."""
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
