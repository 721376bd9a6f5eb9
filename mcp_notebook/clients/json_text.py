"""Changes one member of JSON that may have comments and trailing commas, and nothing else.

Pure functions on strings, in the process of the command. Python's decoder parses strings and
numbers; objects, arrays and comments are parsed here. Libraries that preserve comments parse JSON5:
they accept what clients reject, take forty times as long, and have poor error messages (json-five
1.1.2). `settings_text` checks the result.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from mcp_notebook.clients.client import Entry

_INDENT = re.compile(r"[ \t]*")
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SAME_LINE = re.compile(r"(?:[ \t]*(?:/\*.*?\*/|//[^\r\n]*))*", re.DOTALL)
"""Comments on the rest of a line, without trailing space."""


@dataclass(frozen=True, slots=True)
class _Node:
    start: int
    end: int
    value: Any
    members: tuple["_Member", ...] = ()
    """The members of an object, or of a list of objects with names."""


@dataclass(frozen=True, slots=True)
class _Member:
    start: int
    key: str
    node: _Node


def read_json(text: str) -> Any:
    """Parse JSON with comments; an empty text is an empty object.

    Raises:
        ValueError: The text is not valid; the message names the line.
    """
    node = _parse(text)
    return {} if node is None else node.value


def put_json(text: str, section: str, name: str, entry: Entry, *, in_list: bool = False) -> str:
    """Add an entry to a section, or replace it, and return the new text.

    Args:
        text: A valid document. If it has the section, that is an object.
        section: The member that holds the entries.
        name: The entry's name.
        entry: The entry.
        in_list: Whether the section is a list of entries with names.
    """
    root = _parse(text)
    entry = {"name": name} | entry if in_list else entry
    servers = [entry] if in_list else {name: entry}
    if root is None:
        return text + json.dumps({section: servers}, indent=2, ensure_ascii=False) + "\n"
    unit = _find_unit(text, root)
    holder = _find(root, section)
    if holder is None:
        return _insert(text, root, section, servers, unit)
    member = _find(holder.node, name)
    if member is None:
        return _insert(text, holder.node, name, entry, unit)
    indent = _find_indent(text, member.start)
    value = _render(text, entry, unit if indent is not None else None, indent or "")
    return text[: member.node.start] + value + text[member.node.end :]


def cut_json(text: str, section: str, name: str) -> str:
    """Remove an existing entry, and return the new text."""
    root = _parse(text)
    assert root is not None
    holder = _find(root, section)
    assert holder is not None
    members = holder.node.members
    member = _find(holder.node, name)
    assert member is not None
    comma = _find_comma(text, member.node.end)
    end = comma or member.node.end
    if _is_line_start(text, member.start):
        start = _find_line_break(text, member.start)
    else:
        start = member.start
        blank = text[end : end + 1] == " " if members[0] is member else text[start - 1] == " "
        start, end = (start, end + blank) if members[0] is member else (start - blank, end)
    if len(members) == 1 and not text[holder.node.start + 1 : start].strip():
        rest = text[end : holder.node.end - 1]
        if not rest.strip():
            empty = json.dumps(type(holder.node.value)())
            return text[: holder.node.start] + empty + text[holder.node.end :]
    result = text[:start] + text[end:]
    index = members.index(member)
    if comma is None and index:
        # Remove the comma of the new last member.
        before = _find_comma(text, members[index - 1].node.end)
        assert before is not None
        result = result[: before - 1] + result[before:]
    return result


def _find(node: _Node, key: str) -> _Member | None:
    # Of duplicate keys, parsers take the last.
    return next((member for member in reversed(node.members) if member.key == key), None)


def _find_unit(text: str, root: _Node) -> str:
    """Return the indent of one level."""
    outer = _find_indent(text, root.start, leading=True) or ""
    inside = _find_indent(text, root.members[0].start) if root.members else None
    return (inside or "").removeprefix(outer) or "  "


def _insert(text: str, node: _Node, key: str, value: Any, unit: str) -> str:
    """Append a member to an object or a list, and return the new text."""
    name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(node.value, dict) else ""
    inside = node.end - 1
    if not node.members:
        outer = _find_indent(text, node.start, leading=True) or ""
        comments = text[node.start + 1 : inside]
        comments = (
            comments.rstrip(" \t").removesuffix("\n").removesuffix("\r") if comments.strip() else ""
        )
        member = f"{name}{_render(text, value, unit, outer + unit)}"
        lines = _find_break(text) + outer + unit + member + _find_break(text) + outer
        return text[: node.start + 1] + comments + lines + text[inside:]
    last = node.members[-1]
    comma = _find_comma(text, last.node.end)
    end = comma or last.node.end
    before = text[: last.node.end] + ("" if comma else ",") + text[last.node.end : end]
    indent = _find_indent(text, last.start)
    if indent is None and "\n" not in text[end:inside]:
        member = f" {name}{_render(text, value, None, '')}"
        return before + member + ("," if comma else "") + text[end:]
    if indent is None:
        indent = (_find_indent(text, node.end, leading=True) or "") + unit
    same_line = _SAME_LINE.match(text, end)
    assert same_line is not None
    place = same_line.end()
    member = f"{name}{_render(text, value, unit, indent)}"
    after = "," if comma else ""
    return before + text[end:place] + _find_break(text) + indent + member + after + text[place:]


def _render(text: str, value: Any, unit: str | None, indent: str) -> str:
    """Render a value at an indent; on one line without a unit."""
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (_find_break(text) + indent).join(lines)


def _find_comma(text: str, position: int) -> int | None:
    """Return the position after the comma that follows a value; None without a comma."""
    place = _skip(text, position)
    return place + 1 if text.startswith(",", place) else None


def _skip(text: str, position: int) -> int:
    match = _TRIVIA.match(text, position)
    assert match is not None
    return match.end()


# -- reading ---------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid in JSON")


_SCALARS = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse(text: str) -> _Node | None:
    """Parse a string; None if it is empty."""
    start = _skip(text, 0)
    if start == len(text):
        return None
    try:
        node = _parse_value(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    end = _skip(text, node.end)
    if end != len(text):
        _fail(text, end)
    return node


def _parse_value(text: str, start: int) -> _Node:
    if text.startswith("{", start):
        return _parse_object(text, start)
    if text.startswith("[", start):
        return _parse_array(text, start)
    try:
        value, end = _SCALARS.raw_decode(text, start)
    except json.JSONDecodeError as error:
        _fail(text, error.pos)
    return _Node(start, end, value)


def _parse_object(text: str, start: int) -> _Node:
    members: list[_Member] = []
    place = _skip(text, start + 1)
    while not text.startswith("}", place):
        if not text.startswith('"', place):
            _fail(text, place)
        key = _parse_value(text, place)
        colon = _skip(text, key.end)
        if not text.startswith(":", colon):
            _fail(text, colon)
        node = _parse_value(text, _skip(text, colon + 1))
        members.append(_Member(place, key.value, node))
        place = _skip_comma(text, node.end, "}")
    value = {member.key: member.node.value for member in members}
    return _Node(start, place + 1, value, tuple(members))


def _parse_array(text: str, start: int) -> _Node:
    values, members = [], []
    place = _skip(text, start + 1)
    while not text.startswith("]", place):
        node = _parse_value(text, place)
        values.append(node.value)
        if isinstance(node.value, dict) and isinstance(node.value.get("name"), str):
            members.append(_Member(place, node.value["name"], node))
        place = _skip_comma(text, node.end, "]")
    return _Node(start, place + 1, values, tuple(members))


def _skip_comma(text: str, position: int, closing: str) -> int:
    """Return the position of the next member or of the closing bracket."""
    place = _skip(text, position)
    if text.startswith(",", place):
        return _skip(text, place + 1)
    if not text.startswith(closing, place):
        _fail(text, place)
    return place


def _fail(text: str, position: int) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    end = _find_line_end(text, position)
    rest = text[position:end][:20]
    raise ValueError(f"line {line}: {f'unexpected {rest!r}' if rest else 'unexpected end'}")


# -- lines -----------------------------------------------------------------------------------------


def _find_break(text: str) -> str:
    """Return the line ending of a string."""
    return "\r\n" if "\r\n" in text else "\n"


def _find_line_start(text: str, position: int) -> int:
    """Return the start of a position's line."""
    return text.rfind("\n", 0, position) + 1


def _find_line_end(text: str, position: int) -> int:
    """Return the end of a position's line, before the line ending."""
    end = text.find("\n", position)
    if end < 0:
        return len(text)
    return end - 1 if end > position and text[end - 1] == "\r" else end


def _find_line_break(text: str, position: int) -> int:
    """Return the position of the line ending before a position's line; 0 on the first line."""
    start = _find_line_start(text, position)
    return start - 2 if text[max(start - 2, 0) : start] == "\r\n" else max(start - 1, 0)


def _is_line_start(text: str, position: int) -> bool:
    """Return whether only an indent precedes a position on its line."""
    return not text[_find_line_start(text, position) : position].strip(" \t")


def _find_indent(text: str, position: int, *, leading: bool = False) -> str | None:
    """Return the indent of a position's line; None if something else precedes the position.

    Args:
        text: The text.
        position: A position in it.
        leading: Whether to return the indent in any case.
    """
    if not leading and not _is_line_start(text, position):
        return None
    match = _INDENT.match(text, _find_line_start(text, position))
    assert match is not None
    return match[0]
