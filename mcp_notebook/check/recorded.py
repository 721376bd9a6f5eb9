"""The file of answers beside a notebook, with which later checks compare theirs.

Runs in the process of the command. The file is JSON that reads well in a diff: each line of an
answer is a line of the file.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp_notebook.check.answers import normalize_text
from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import Answer, Subject
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.shared_files import replace_file


def find_place(notebook: Path) -> Path:
    """Return the path of a notebook's file of answers."""
    return notebook.with_suffix(".answers.json")


def read_recorded(notebook: Path) -> Mapping[str, Any] | None:
    """Return the recorded answers by tool and example; None if there are none.

    Raises:
        NotebookError: The file cannot be read.
    """
    place = find_place(notebook)
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NotebookError(
            f"The recorded answers in {place} cannot be read ({error}). Write them again with "
            f"`mcp-notebook check {notebook} --record`."
        ) from None
    return content if isinstance(content, dict) else None


def write_recorded(subject: Subject) -> Path:
    """Write the answers beside the notebook, and return the file's path.

    Raises:
        NotebookError: The file cannot be written.
    """
    place = find_place(subject.notebook)
    recorded: dict[str, dict[str, list[str]]] = {}
    for answer in _list_answers(subject):
        recorded.setdefault(answer.tool, {})[answer.example] = _list_lines(answer)
    try:
        replace_file(
            place, json.dumps(recorded, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        )
    except OSError as error:
        raise NotebookError(f"{error.filename} cannot be written: {error.strerror}.") from None
    return place


def compare_recorded(subject: Subject) -> Iterator[Finding]:
    """Yield the examples whose answers are not the recorded ones."""
    if subject.recorded is None:
        return
    tools = {tool.name: tool for tool in subject.tools}
    for answer in _list_answers(subject):
        lines, example = _list_lines(answer), answer.example
        known = subject.recorded.get(answer.tool, {}).get(example)
        if known is None or known == lines:
            continue
        tool = tools[answer.tool]
        pairs = zip((*known, "(end)"), (*lines, "(end)"), strict=False)
        before, after = next((a, b) for a, b in pairs if a != b)
        yield Finding(
            tool=answer.tool,
            rule="other-answer",
            severity="warning",
            cell=None if tool.cell is None else tool.cell.number,
            line=None if tool.function is None else tool.function.lineno,
            reason=f"The example {example} has another answer than the recorded one: {after!r} in "
            f"place of {before!r}.",
            advice="If the new answer is right, record it with `--record`.",
            example=example,
        )


def _list_answers(subject: Subject) -> list[Answer]:
    """Return one answer to each example: those of the first client, if they are good."""
    return [
        answer
        for answer in subject.answers
        if answer.era == "modern" and answer.result and not answer.is_error
    ]


def _list_lines(answer: Answer) -> list[str]:
    return normalize_text(answer).splitlines()
