"""Writes safe corrections into a notebook's file.

Runs in the process of the command.
"""

from collections.abc import Iterable
from pathlib import Path

import nbformat

from mcp_notebook.bridge.headless.notebook_reader import read_notebook
from mcp_notebook.check.findings import Finding


def apply_fixes(path: Path, findings: Iterable[Finding]) -> list[Finding]:
    """Correct a notebook, and return the findings that are corrected.

    A line is changed once: of several corrections of it, the first is made.

    Raises:
        NotebookError: The file cannot be read.
    """
    _, notebook = read_notebook(path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    fixed = []
    # From below, so that a correction of several lines moves no other.
    for finding in sorted(findings, key=_find_position, reverse=True):
        edit = finding.fix
        if edit is None:
            continue
        lines = cells[edit.cell - 1].source.split("\n")
        if lines[edit.line - 1] == edit.old:
            lines[edit.line - 1] = edit.new
            cells[edit.cell - 1].source = "\n".join(lines)
            fixed.append(finding)
    if fixed:
        nbformat.write(notebook, path)
    return fixed


def _find_position(finding: Finding) -> tuple[int, int]:
    return (0, 0) if finding.fix is None else (finding.fix.cell, finding.fix.line)
