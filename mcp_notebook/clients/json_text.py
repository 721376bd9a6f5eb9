"""Changes one member of JSON that may have comments and trailing commas, and nothing else.

Pure functions on texts, in the process of the command. Python's own decoder reads texts and
numbers; what is around them is read here. Libraries that keep comments read JSON5, so they take
what clients refuse, need forty times as long, and say little of what is wrong (json-five 1.1.2).
That the result means what it should is checked by `settings_text`.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from mcp_notebook.clients.client import Entry

_INDENT = re.compile(r"[ \t]*")
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SAME_LINE = re.compile(r"(?:[ \t]*(?:/\*.*?\*/|//[^\r\n]*))*", re.DOTALL)
"""Comments that begin on the line of what is before them, without what is after the last one."""


@dataclass(frozen=True, slots=True)
class _Node:
    start: int
    end: int
    value: Any
    members: tuple["_Member", ...] = ()
    """Of an object."""


@dataclass(frozen=True, slots=True)
class _Member:
    start: int
    key: str
    node: _Node


def read_json(text: str) -> Any:
    """Return what a text means; an empty one is an empty object.

    Raises:
        ValueError: It is not valid, with the line.
    """
    node = _parse(text)
    return {} if node is None else node.value


def put_json(text: str, section: str, name: str, entry: Entry) -> str:
    """Return a text with an entry in a section, in the place of one that has the name.

    Args:
        text: A valid document, whose section is an object if it is there.
        section: The member of the document that holds the entries.
        name: Of the entry.
        entry: The entry.
    """
    root = _parse(text)
    if root is None:
        document = json.dumps({section: {name: entry}}, indent=2, ensure_ascii=False) + "\n"
        return text + document
    unit = _find_unit(text, root)
    holder = _find(root, section)
    if holder is None:
        return _insert(text, root, section, {name: entry}, unit)
    member = _find(holder.node, name)
    if member is None:
        return _insert(text, holder.node, name, entry, unit)
    indent = _find_indent(text, member.start)
    value = _render(text, entry, unit if indent is not None else None, indent or "")
    return text[: member.node.start] + value + text[member.node.end :]


def cut_json(text: str, section: str, name: str) -> str:
    """Return a text without an entry, which it has."""
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
            return text[: holder.node.start] + "{}" + text[holder.node.end :]
    result = text[:start] + text[end:]
    index = members.index(member)
    if comma is None and index:
        # The one before is the last one now.
        before = _find_comma(text, members[index - 1].node.end)
        assert before is not None
        result = result[: before - 1] + result[before:]
    return result


def _find(node: _Node, key: str) -> _Member | None:
    # Of two with one key, readers take the last.
    return next((member for member in reversed(node.members) if member.key == key), None)


def _find_unit(text: str, root: _Node) -> str:
    """Return what each level is indented by."""
    outer = _find_indent(text, root.start, leading=True) or ""
    inside = _find_indent(text, root.members[0].start) if root.members else None
    return (inside or "").removeprefix(outer) or "  "


def _insert(text: str, node: _Node, key: str, value: Any, unit: str) -> str:
    """Return the text with another member at the end of an object."""
    name = json.dumps(key, ensure_ascii=False)
    inside = node.end - 1
    if not node.members:
        outer = _find_indent(text, node.start, leading=True) or ""
        comments = text[node.start + 1 : inside]
        comments = (
            comments.rstrip(" \t").removesuffix("\n").removesuffix("\r") if comments.strip() else ""
        )
        member = f"{name}: {_render(text, value, unit, outer + unit)}"
        lines = _find_break(text) + outer + unit + member + _find_break(text) + outer
        return text[: node.start + 1] + comments + lines + text[inside:]
    last = node.members[-1]
    comma = _find_comma(text, last.node.end)
    end = comma or last.node.end
    before = text[: last.node.end] + ("" if comma else ",") + text[last.node.end : end]
    indent = _find_indent(text, last.start)
    if indent is None and "\n" not in text[end:inside]:
        member = f" {name}: {_render(text, value, None, '')}"
        return before + member + ("," if comma else "") + text[end:]
    if indent is None:
        indent = (_find_indent(text, node.end, leading=True) or "") + unit
    same_line = _SAME_LINE.match(text, end)
    assert same_line is not None
    place = same_line.end()
    member = f"{name}: {_render(text, value, unit, indent)}"
    after = "," if comma else ""
    return before + text[end:place] + _find_break(text) + indent + member + after + text[place:]


def _render(text: str, value: Any, unit: str | None, indent: str) -> str:
    """Return a value as it is written at an indent; on one line without a unit."""
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (_find_break(text) + indent).join(lines)


def _find_comma(text: str, position: int) -> int | None:
    """Return the position behind the comma that follows a value, if one does."""
    place = _skip(text, position)
    return place + 1 if text.startswith(",", place) else None


def _skip(text: str, position: int) -> int:
    match = _TRIVIA.match(text, position)
    assert match is not None
    return match.end()


# -- reading ---------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_SCALARS = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse(text: str) -> _Node | None:
    """Return the value of a text; None if there is none."""
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
    values = []
    place = _skip(text, start + 1)
    while not text.startswith("]", place):
        node = _parse_value(text, place)
        values.append(node.value)
        place = _skip_comma(text, node.end, "]")
    return _Node(start, place + 1, values)


def _skip_comma(text: str, position: int, closing: str) -> int:
    """Return where the next member or the closing bracket is."""
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
    raise ValueError(
        f"line {line}: {f'{rest!r} was not expected' if rest else 'it ends too early'}"
    )


# -- lines -----------------------------------------------------------------------------------------


def _find_break(text: str) -> str:
    """Return what ends the lines of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _find_line_start(text: str, position: int) -> int:
    """Return where the line of a position begins."""
    return text.rfind("\n", 0, position) + 1


def _find_line_end(text: str, position: int) -> int:
    """Return where the line of a position ends, before its break."""
    end = text.find("\n", position)
    if end < 0:
        return len(text)
    return end - 1 if end > position and text[end - 1] == "\r" else end


def _find_line_break(text: str, position: int) -> int:
    """Return where the break before the line of a position begins; 0 on the first line."""
    start = _find_line_start(text, position)
    return start - 2 if text[max(start - 2, 0) : start] == "\r\n" else max(start - 1, 0)


def _is_line_start(text: str, position: int) -> bool:
    """Return whether nothing but an indent is before a position on its line."""
    return not text[_find_line_start(text, position) : position].strip(" \t")


def _find_indent(text: str, position: int, *, leading: bool = False) -> str | None:
    """Return the indent of what stands at a position; None if it is not the first on its line.

    Args:
        text: The text.
        position: Of a word in it.
        leading: Whether to return that of the line, whatever else is before the position.
    """
    if not leading and not _is_line_start(text, position):
        return None
    match = _INDENT.match(text, _find_line_start(text, position))
    assert match is not None
    return match[0]
