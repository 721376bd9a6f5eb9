"""What a model reads of a tool: too little, or the same as of another tool.

Pure. The measures are simple so that a finding can be argued with: words without endings and
without "the" and "of".
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.lint.sources import Places
from mcp_notebook.check.lint.wording import (
    find_first_paragraph,
    find_plain_stems,
    find_stems,
    list_new_words,
    measure_overlap,
)
from mcp_notebook.check.subject import CheckedTool
from mcp_notebook.text.wording import count

MIN_NEW_WORDS = 2
"""Words that a description must have which are not in the name."""
MAX_OVERLAP = 0.8
"""Part of the words of two descriptions that both may have."""
MAX_NAME_OVERLAP = 0.4
"""The same for descriptions of tools whose names mean the same."""
_VAGUE = frozenset(
    """
    run main process handle do test tmp temp foo bar baz tool func function helper execute go call
    stuff thing data calc compute my example demo util task action work job op
    """.split()  # noqa: SIM905 - a table
)
"""Names, or the words of names, that could stand for any tool."""
_MAX_LISTED = 5
_MIN_BEGINNING = 3
"""Characters by which a word of a description is known in a name."""


def check_descriptions(tool: CheckedTool, places: Places) -> Iterator[Finding]:
    """Yield what a model is not told about a tool."""
    yield from _check_name(tool, places)
    yield from _check_description(tool, places)
    yield from _check_parameters(tool, places)


def _check_name(tool: CheckedTool, places: Places) -> Iterator[Finding]:
    words = re.sub(r"\d+", "", tool.name.lower()).strip("_-").split("_")
    if len(tool.name) > 2 and not set(words) <= _VAGUE:  # noqa: PLR2004 - initials
        return
    yield places.make_finding(
        tool.name,
        rule="vague-name",
        severity="warning",
        reason=f"The name `{tool.name}` could stand for any tool, and a model chooses by names.",
        advice="Name what it does and to what, such as `count_orders`.",
    )


def _check_description(tool: CheckedTool, places: Places) -> Iterator[Finding]:
    text = _find_own_text(tool)
    if not text:
        yield places.make_finding(
            tool.name,
            rule="no-description",
            severity="error",
            reason="The tool has no description, so a model can only guess what it is for.",
            advice="Write a docstring: what it returns, of what, and in which unit.",
        )
        return
    if len(list(list_new_words(tool.name, text))) < MIN_NEW_WORDS:
        yield places.make_finding(
            tool.name,
            rule="short-description",
            severity="warning",
            reason=f"The description, {text[:80]!r}, says hardly more than the name.",
            advice="Say what it returns, of what, and in which unit or order.",
        )


def _find_own_text(tool: CheckedTool) -> str:
    """Return the description without what was added to it."""
    return tool.info.description.partition("Examples of arguments:")[0].strip()


def _check_parameters(tool: CheckedTool, places: Places) -> Iterator[Finding]:
    words = find_plain_stems(_find_own_text(tool))  # "the days of a year" describes `year`
    names = [
        name
        for name, item in tool.info.input_schema.get("properties", {}).items()
        if not (isinstance(item, dict) and item.keys() & {"description", "$ref", "enum"})
        and not _mentions(words, name)
    ]
    if not names:
        return
    listed = ", ".join(f"`{name}`" for name in names[:_MAX_LISTED])
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    subject = "parameter has" if len(names) == 1 else "parameters have"
    yield places.make_finding(
        tool.name,
        rule="undescribed-parameter",
        severity="warning",
        reason=(
            f"{count(len(names), subject, subject)} no description: {listed}{more}. A model "
            "guesses units, formats and allowed values."
        ),
        advice=f'Add "Args:" with "{names[0]}: ..." to the docstring, or `Annotated[..., "..."]`.',
        parameter=names[0],
    )


def _mentions(words: frozenset[str], name: str) -> bool:
    stems = find_plain_stems(name)
    return bool(stems) and stems <= words


def find_confusable(tools: Sequence[CheckedTool], places: Places) -> Iterator[Finding]:
    """Yield a finding for each tool that a model can take for an earlier one."""
    texts = {tool.name: find_first_paragraph(_find_own_text(tool)) for tool in tools}
    for one, other in itertools.combinations(tools, 2):
        shared = _describe_likeness(one.name, other.name, texts)
        if shared is None:
            continue
        yield places.make_finding(
            other.name,
            rule="confusable",
            severity="warning",
            reason=f"A model can take it for `{one.name}`: {shared}.",
            advice="Begin each description with what only this tool does, or make them one tool.",
        )


def _describe_likeness(one: str, other: str, texts: dict[str, str]) -> str | None:
    """Return in which words two tools are alike; None if they differ enough."""
    first, second = find_stems(texts[one]), find_stems(texts[other])
    if not first or not second:
        return None
    if texts[one].lower() == texts[other].lower():
        return "their descriptions are the same"
    overlap = measure_overlap(first, second)
    names = find_stems(one), find_stems(other)
    if names[0] == names[1] and overlap >= MAX_NAME_OVERLAP:
        return "their names mean the same, and their descriptions are alike"
    # Words that also set the names apart: `plot_rain` and `plot_snow` differ in what matters.
    if overlap <= MAX_OVERLAP or _is_told(first ^ second, names[0] ^ names[1]):
        return None
    shared, total = len(first & second), len(first | second)
    return f"their descriptions share {shared} of {count(total, 'word')}"


def _is_told(words: frozenset[str], names: frozenset[str]) -> bool:
    """Return whether words that differ begin like parts of the names that do: `log`, say."""
    return any(word[:_MIN_BEGINNING] == name[:_MIN_BEGINNING] for word in words for name in names)
