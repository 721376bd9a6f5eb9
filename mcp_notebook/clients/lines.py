"""The lines of a text: where they begin and end, and how far they are indented.

Pure functions on texts, in the process of the command.
"""

import re

_INDENT = re.compile(r"[ \t]*")


def find_break(text: str) -> str:
    """Return what ends the lines of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def find_line_start(text: str, position: int) -> int:
    """Return where the line of a position begins."""
    return text.rfind("\n", 0, position) + 1


def find_line_end(text: str, position: int) -> int:
    """Return where the line of a position ends, before its break."""
    end = text.find("\n", position)
    if end < 0:
        return len(text)
    return end - 1 if end > position and text[end - 1] == "\r" else end


def find_line_break(text: str, position: int) -> int:
    """Return where the break before the line of a position begins; 0 on the first line."""
    start = find_line_start(text, position)
    return start - 2 if text[max(start - 2, 0) : start] == "\r\n" else max(start - 1, 0)


def is_line_start(text: str, position: int) -> bool:
    """Return whether nothing but an indent is before a position on its line."""
    return not text[find_line_start(text, position) : position].strip(" \t")


def find_indent(text: str, position: int, *, leading: bool = False) -> str | None:
    """Return the indent of what stands at a position; None if it is not the first on its line.

    Args:
        text: The text.
        position: Of a word in it.
        leading: Whether to return that of the line, whatever else is before the position.
    """
    if not leading and not is_line_start(text, position):
        return None
    match = _INDENT.match(text, find_line_start(text, position))
    assert match is not None
    return match[0]
