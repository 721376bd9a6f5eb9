"""Findings of the checks: where, why, and what to write instead.

Pure data.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
"""Whether calls fail or mislead, a model will use the tool badly, or something could be better.
Notes do not change the exit status."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong with a tool, or with the notebook."""

    tool: str | None
    """The tool's name; None if it concerns the notebook."""
    rule: str
    """The rule's name, in lower case with hyphens: ``changes-state``."""
    severity: Severity
    reason: str
    """What is wrong and why it matters, in one or two sentences."""
    advice: str
    """What to write or do instead, as a sentence."""
    cell: int | None = None
    """The cell's number among the notebook's code cells, from 1."""
    line: int | None = None
    """The line's number in the cell, from 1."""

    @property
    def place(self) -> str:
        """The cell and line for people; empty if unknown."""
        if self.cell is None:
            return ""
        return f"cell {self.cell}" + ("" if self.line is None else f", line {self.line}")


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order of the notebook's cells; those without a place come first."""
    return sorted(findings, key=lambda each: (each.cell or 0, each.line or 0, each.tool or ""))


def is_clean(findings: Iterable[Finding]) -> bool:
    """Return whether there is nothing but notes."""
    return all(finding.severity == "note" for finding in findings)
