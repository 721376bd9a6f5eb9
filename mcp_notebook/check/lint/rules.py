"""All rules about the code and the words of tools, in order.

Runs in the process of the command; calls no tool.
"""

import re
from collections.abc import Iterator

from mcp_notebook.check.findings import Edit, Finding
from mcp_notebook.check.lint.client_text import find_reaches
from mcp_notebook.check.lint.descriptions import check_descriptions, find_confusable
from mcp_notebook.check.lint.effects import Effects, read_effects
from mcp_notebook.check.lint.names import check_names
from mcp_notebook.check.lint.schemas import check_schema
from mcp_notebook.check.lint.sources import (
    NotebookSource,
    Places,
    SourceTool,
    read_source,
)
from mcp_notebook.check.subject import Subject


def lint_tools(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with the code or the descriptions of tools."""
    source = read_source(subject.cells)
    places = Places(source)
    tools = list(subject.list_tools())
    known = {tool.info.name for tool in subject.tools}
    hints = {tool.name: (tool.info.annotations or {}).get("readOnlyHint") for tool in tools}
    for declared in source.declared:
        reads: object = True
        if declared.kind == "tool":
            yield from check_names(declared, places)
            reads = hints.get(declared.name, declared.options.get("read_only"))
        is_gone = bool(known) and declared.name not in known  # deleted, or never declared
        if declared.function is not None and not is_gone:
            yield from _check_effects(declared, source, reads=reads)
            yield from _check_client_text(declared, source)
    for tool in tools:
        yield from check_descriptions(tool, places)
        yield from check_schema(tool, places)
    yield from find_confusable(tools, places)


# -- read-only -------------------------------------------------------------------------------------


def _check_effects(tool: SourceTool, source: NotebookSource, *, reads: object) -> Iterator[Finding]:
    """Yield that a tool writes although it says it reads, or reads and does not say so."""
    effects = _read_effects(tool, source)
    if reads is True and effects.writes:
        first = effects.writes[0]
        yield Finding(
            tool=tool.name,
            rule="writes",
            severity="error",
            reason=(
                f"It says that it only reads, but it {first.what}. Clients run such tools without "
                "asking, and results may be reused."
                if tool.kind == "tool"
                else f"It is a {tool.kind}, but it {first.what}. Clients read it as often as they "
                "like, and without asking."
            ),
            advice=(
                "Remove `--read-only` (`read_only=True`), or work on a copy."
                if tool.kind == "tool"
                else "Work on a copy, or make it a tool."
            ),
            cell=first.cell,
            line=first.line,
        )
    elif reads is None and not effects.writes and effects.is_known:
        yield Finding(
            tool=tool.name,
            rule="unsaid-read-only",
            severity="warning",
            reason=(
                "It only reads but does not say so, and clients ask the user before each call of "
                "a tool that may write."
            ),
            advice="Add `--read-only` to the magic's line (`read_only=True` to a decorator).",
            cell=tool.cell,
            line=tool.line,
            fix=_make_fix(tool, source),
        )


def _read_effects(tool: SourceTool, source: NotebookSource) -> Effects:
    assert tool.function is not None
    effects = read_effects(source, tool.function, tool.cell, is_method=tool.is_method)
    if tool.options.get("run") == "fork" or "executor" in tool.options:
        # What it changes in memory is lost with the copy.
        effects.writes = [write for write in effects.writes if write.is_lasting]
    return effects


def _make_fix(tool: SourceTool, source: NotebookSource) -> Edit | None:
    """Return the edit that adds the option; None if it would also change other tools."""
    declaration = tool.declaration
    together = [other for other in source.tools if other.declaration == declaration]
    for other in together:
        effects = None if other.function is None else _read_effects(other, source)
        if effects is None or effects.writes or not effects.is_known:
            return None
    old = source.cells[declaration.cell].split("\n")[declaration.line - 1]
    if declaration.form in ("cell", "line"):
        new = f"{old.rstrip()} --read-only"
    elif declaration.form == "decorator":
        new = f"{old.rstrip()}(read_only=True)"
    else:
        return None
    is_plain = declaration.form != "decorator" or re.fullmatch(r"\s*@[\w.]+\s*", old)
    return (
        Edit(cell=declaration.cell, line=declaration.line, old=old, new=new) if is_plain else None
    )


# -- text from clients -----------------------------------------------------------------------------


def _check_client_text(tool: SourceTool, source: NotebookSource) -> Iterator[Finding]:
    assert tool.function is not None
    for reach in find_reaches(source, tool.function, tool.cell, is_method=tool.is_method):
        yield Finding(
            tool=tool.name,
            rule=reach.rule,
            severity="warning" if reach.rule == "client-path" else "error",
            reason=f"{reach.reason}.",
            advice=reach.advice,
            cell=reach.cell,
            line=reach.line,
        )
