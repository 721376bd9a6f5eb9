"""Writes safe corrections into a notebook's file, and leaves all other bytes as they are.

Runs in the process of the command. The file is not written anew from its parsed form: another
program's indentation, order of keys and escapes would make a difference of every line.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcp_notebook.check.findings import Edit, Finding
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.shared_files import replace_file

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[\s,:]*")


def apply_fixes(path: Path, findings: Iterable[Finding]) -> list[Finding]:
    """Correct a notebook, and return the findings that are corrected.

    A line is changed once: several findings with the same correction are corrected together. In a
    notebook of a format before version 4, nothing is.

    Raises:
        NotebookError: The file cannot be written; it is as it was.
    """
    text = path.read_bytes().decode("utf-8")
    sources = list(_find_sources(text))
    spans: dict[Edit, tuple[int, int, str]] = {}
    fixed = []
    for finding in findings:
        edit = finding.fix
        if edit is None or not 0 < edit.cell <= len(sources):
            continue
        span = spans.get(edit) or _find_line(text, sources[edit.cell - 1], edit)
        if span is not None and all(
            other == span or other[:2] != span[:2] for other in spans.values()
        ):
            spans[edit] = span
            fixed.append(finding)
    for start, end, new in sorted(set(spans.values()), reverse=True):
        text = text[:start] + new + text[end:]
    if spans:
        _replace(path, text)
    return fixed


def _replace(path: Path, text: str) -> None:
    try:
        replace_file(path, text)
    except OSError as error:
        raise NotebookError(
            f"{path} was not corrected: {error.filename} cannot be written ({error.strerror}). "
            "Make it writable, or correct the notebook by hand."
        ) from None


def _find_sources(text: str) -> Iterator[int]:
    """Yield where the sources of the code cells begin."""
    cells = _find_members(text, text.index("{")).get("cells")
    for start, _ in [] if cells is None else _list_items(text, cells):
        members = _find_members(text, start)
        if _DECODER.raw_decode(text, members["cell_type"])[0] == "code":
            yield members["source"]


def _find_members(text: str, start: int) -> dict[str, int]:
    """Return where the values of an object begin, by their names."""
    members = {}
    position = _skip(text, start + 1)
    while text[position] != "}":
        name, position = _DECODER.raw_decode(text, position)
        members[name] = _skip(text, position)
        position = _skip(text, _DECODER.raw_decode(text, members[name])[1])
    return members


def _list_items(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield where the items of a list begin and end."""
    position = _skip(text, start + 1)
    while text[position] != "]":
        end = _DECODER.raw_decode(text, position)[1]
        yield position, end
        position = _skip(text, end)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()


def _find_line(text: str, source: int, edit: Edit) -> tuple[int, int, str] | None:
    """Return the JSON string that holds an edit's line, and the string in its place.

    None if the line is another one by now.
    """
    is_list = text[source] == "["
    spans = (
        list(_list_items(text, source))
        if is_list
        else [(source, _DECODER.raw_decode(text, source)[1])]
    )
    first = 1
    for start, end in spans:
        lines = str(_DECODER.raw_decode(text, start)[0]).split("\n")
        place = edit.line - first
        if place < len(lines) and lines[place] == edit.old:
            lines[place] = edit.new
            return start, end, json.dumps("\n".join(lines), ensure_ascii=text[start:end].isascii())
        first += len(lines) - 1
        if first > edit.line:
            break
    return None
