"""Runs a notebook, checks its tools, and prints the findings.

Runs in the process of the command, on its event loop. The kernel is one of its own, which ends
with the command.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mcp_notebook.bridge.headless.cell_progress import show_on_stderr
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.bridge.headless.notebook_reader import list_code_cells, read_notebook
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.protocol.tool_form import VERSIONS, make_tool_form
from mcp_notebook.check.cost import find_savings
from mcp_notebook.check.findings import Finding, describe_finding, is_clean, sort_findings
from mcp_notebook.check.fixes import apply_fixes
from mcp_notebook.check.lint import lint_tools
from mcp_notebook.check.subject import CheckedTool, CodeCell, Subject, find_definition
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_data, print_note, print_output
from mcp_notebook.text.wording import count
from mcp_notebook.wire import messages

Check: TypeAlias = Callable[[Subject], Iterable[Finding]]
CHECKS: Sequence[Check] = (lint_tools, find_savings)
"""The checks, in the order in which they are made."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What to check, as typed in a shell."""

    notebook: Path
    fixes: bool = False
    """Whether to correct in the notebook what is safe to correct."""
    as_json: bool = False
    """Whether to print one JSON object instead of lines."""


async def examine(settings: Settings, examination: Examination) -> bool:
    """Check a notebook's tools, print the findings, and return whether there are none but notes.

    Raises:
        NotebookError: The notebook cannot be run.
    """
    subject = await _run(settings, examination.notebook)
    findings = sort_findings(finding for check in CHECKS for finding in check(subject))
    if examination.fixes:
        fixed = apply_fixes(examination.notebook, findings)
        findings = [finding for finding in findings if finding not in fixed]
        print_note(f"Corrected {count(len(fixed), 'line')} in {examination.notebook}.")
    if examination.as_json:
        described = {"findings": [describe_finding(finding) for finding in findings]}
        print_data(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        _print_findings(findings)
    return is_clean(findings)


async def _run(settings: Settings, notebook: Path) -> Subject:
    """Run a notebook, and return what is checked."""
    version = read_notebook(notebook)
    cells = [
        CodeCell(number=number, source=cell.source)
        for number, cell in enumerate(list_code_cells(version[1]).cells, start=1)
    ]
    with show_on_stderr() as progress:
        async with (
            run_notebook(notebook, settings, progress=progress, version=version) as running,
            Links(Catalog(), on_change=lambda: None) as links,
            links.open_link(running.record, running.describe_end) as link,
        ):
            tools = [_describe(info, cells) for info in link.initial_tools]
            return Subject(notebook=notebook, cells=cells, tools=tools)


def _describe(info: messages.ToolInfo, cells: Sequence[CodeCell]) -> CheckedTool:
    entry = make_tool_form(info.name, info, VERSIONS[-1]) if info.kind == "tool" else {}
    cell, function = find_definition(cells, info.name)
    return CheckedTool(info=info, entry=entry, cell=cell, function=function)


def _print_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        place = ", ".join(filter(None, [finding.tool, finding.place]))
        print_output(f"{place}: {finding.severity}: {finding.reason} {finding.advice}")
    print_output(count(len(findings), "finding"))
