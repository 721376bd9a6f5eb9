"""Changes one entry of a YAML document, and nothing else.

Pure functions on texts, in the process of the command. ruamel.yaml says where each node begins and
ends; it could keep comments itself, but would lay out lists and long lines anew. That the result
means what it should is checked by `settings_text`.
"""

import io
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from mcp_notebook.clients.client import Entry
from mcp_notebook.clients.lines import find_break, find_indent, find_line_end, find_line_start
from mcp_notebook.clients.rendering import render_yaml, render_yaml_item

_Node: TypeAlias = Any
"""One of ruamel.yaml's, which are hardly typed."""


def read_yaml(text: str) -> Any:
    """Return what a text means; an empty one is an empty mapping.

    Raises:
        ValueError: It is not valid, with the line.
    """
    try:
        value = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(
            f"{where}{error.problem or error.context or 'it cannot be read'}"
        ) from None
    except YAMLError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    return {} if value is None else value


def put_yaml(  # noqa: PLR0913 - what there is to say
    text: str,
    section: str,
    name: str,
    entry: Entry,
    *,
    is_list: bool,
    required: Mapping[str, str] | None = None,
) -> str:
    """Return a text with an entry in a section, in the place of one that has the name.

    Args:
        text: A valid document, whose section is what `entry` belongs in if it is there.
        section: The member of the document that holds the entries.
        name: Of the entry. One that has it within belongs in a list.
        entry: The entry.
        is_list: Whether the section is a list, and the entry has its name within.
        required: What a document without anything needs besides.
    """
    block = _render(text, name, entry, is_list=is_list)
    root = _compose(text)
    holder = _find_holder(root, section)
    if holder is None:
        head = render_yaml(dict(required or {})) if root is None else ""
        return _append(text, root, section, head + f"{section}:\n" + _indent(block, "  "))
    key, node = holder
    number = _find_entry(node, name)
    if number is not None:
        return _replace(text, node, number, block)
    if isinstance(node, ScalarNode):  # nothing stands there
        end = find_line_end(text, key.end_mark.index)
        return text[:end] + find_break(text) + _indent(block, "  ").rstrip("\r\n") + text[end:]
    if node.flow_style:
        return _put_in_flow(text, node, name, entry)
    start, end = node.value[0], _find_end(text, node)
    first = start if isinstance(node, SequenceNode) else start[0]
    indent = _find_item_indent(text, first) if isinstance(node, SequenceNode) else None
    indent = find_indent(text, first.start_mark.index) if indent is None else indent
    lines = _indent(block, indent or "")
    if end == len(text) and not text.endswith("\n"):
        return text + find_break(text) + lines.rstrip("\r\n")
    return text[:end] + lines + text[end:]


def cut_yaml(text: str, section: str, name: str) -> str:
    """Return a text without an entry, which it has."""
    holder = _find_holder(_compose(text), section)
    assert holder is not None
    _, node = holder
    number = _find_entry(node, name)
    assert number is not None
    if node.flow_style:
        return _cut_from_flow(text, node, number)
    start, end = _find_span(text, node, number)
    if len(node.value) > 1:
        return text[:start] + text[end:]
    empty = "[]" if isinstance(node, SequenceNode) else "{}"
    key_end = text.rindex(":", 0, start) + 1
    return f"{text[:key_end]} {empty}{text[key_end:start]}{text[end:]}"


# -- where things are ------------------------------------------------------------------------------


def _compose(text: str) -> _Node | None:
    return YAML(typ="safe", pure=True).compose(io.StringIO(text))


def _find_holder(root: _Node | None, section: str) -> tuple[_Node, _Node] | None:
    """Return the key and the value of a section."""
    if not isinstance(root, MappingNode):
        return None
    return next(((key, node) for key, node in root.value if key.value == section), None)


def _find_entry(node: _Node, name: str) -> int | None:
    """Return the number of an entry in a mapping or list."""
    if isinstance(node, MappingNode):
        names = [key.value for key, _ in node.value]
    elif isinstance(node, SequenceNode):
        names = [_find_name(item) for item in node.value]
    else:
        return None
    return names.index(name) if name in names else None


def _find_name(item: _Node) -> object:
    if not isinstance(item, MappingNode):
        return None
    return next((value.value for key, value in item.value if key.value == "name"), None)


def _find_end(text: str, node: _Node) -> int:
    """Return where the line after the last one of a node begins: comments below are not its own."""
    while isinstance(node, MappingNode | SequenceNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(node, MappingNode) else last
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        return int(node.end_mark.index)
    return min(find_line_end(text, node.end_mark.index) + len(find_break(text)), len(text))


def _find_item_indent(text: str, item: _Node) -> str | None:
    """Return the indent of the hyphen before an item."""
    hyphen = text.rindex("-", 0, item.start_mark.index)
    return find_indent(text, hyphen)


def _find_span(text: str, node: _Node, number: int) -> tuple[int, int]:
    """Return where the lines of an entry begin and end."""
    entry = node.value[number]
    if isinstance(node, MappingNode):
        return find_line_start(text, entry[0].start_mark.index), _find_end(text, entry[1])
    hyphen = text.rindex("-", 0, entry.start_mark.index)
    return find_line_start(text, hyphen), _find_end(text, entry)


# -- what is written -------------------------------------------------------------------------------


def _render(text: str, name: str, entry: Entry, *, is_list: bool) -> str:
    block = render_yaml_item(entry, "") if is_list else render_yaml({name: entry})
    return block.replace("\n", find_break(text))


def _indent(block: str, indent: str) -> str:
    return "".join(indent + line for line in block.splitlines(keepends=True))


def _append(text: str, root: _Node | None, section: str, block: str) -> str:
    """Return the text with a section behind all others."""
    if isinstance(root, MappingNode) and root.flow_style:
        lines = read_yaml(block)
        return _insert_in_flow(text, root, f"{json.dumps(section)}: {_to_flow(lines[section])}")
    block = block.replace("\r\n", "\n").replace("\n", find_break(text))
    if text and not text.endswith("\n"):
        text += find_break(text)
    return text + block


def _replace(text: str, node: _Node, number: int, block: str) -> str:
    if node.flow_style:
        # In place of its value; in a list it has its name within.
        target = node.value[number]
        target = target[1] if isinstance(node, MappingNode) else target
        value = read_yaml(block)
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
        return text[: target.start_mark.index] + _to_flow(value) + text[target.end_mark.index :]
    start, end = _find_span(text, node, number)
    indent = find_indent(text, start, leading=True) or ""
    lines = _indent(block, indent)
    return text[:start] + (lines if text[start:end].endswith("\n") else lines.rstrip()) + text[end:]


def _put_in_flow(text: str, node: _Node, name: str, entry: Entry) -> str:
    is_list = isinstance(node, SequenceNode)
    return _insert_in_flow(
        text, node, _to_flow(entry) if is_list else f"{json.dumps(name)}: {_to_flow(entry)}"
    )


def _insert_in_flow(text: str, node: _Node, member: str) -> str:
    if not node.value:
        place = node.start_mark.index + 1
        return text[:place] + member + text[place:]
    last = node.value[-1]
    place = (last[1] if isinstance(node, MappingNode) else last).end_mark.index
    return f"{text[:place]}, {member}{text[place:]}"


def _cut_from_flow(text: str, node: _Node, number: int) -> str:
    pairs = [item if isinstance(item, tuple) else (item, item) for item in node.value]
    first, last = pairs[number]
    start, end = first.start_mark.index, last.end_mark.index
    if number:
        start = pairs[number - 1][1].end_mark.index
    elif len(pairs) > 1:
        end = pairs[1][0].start_mark.index
    return text[:start] + text[end:]


def _to_flow(value: Any) -> str:
    """Return a value as YAML on one line, which is its JSON."""
    return json.dumps(value, ensure_ascii=True)
