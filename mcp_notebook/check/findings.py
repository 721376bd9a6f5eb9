"""Findings of the checks: where, why, and what to write instead.

Pure data.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
"""Whether calls fail or mislead, a model will use the tool badly, or something could be better.
Notes do not change the exit status."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A safe change of one line of a code cell, for ``--fix``."""

    cell: int
    """The cell's number among the notebook's code cells, from 1."""
    line: int
    """The line's number in the cell, from 1."""
    old: str
    """The line as it is; if the cell has another one there, nothing is changed."""
    new: str
    """The line or lines in its place."""


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
    example: str | None = None
    """The example that it is about, as JSON; None if it is about the whole tool."""
    fix: Edit | None = None
    """The change that ``--fix`` makes; None if a person has to decide."""

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


def describe_finding(finding: Finding) -> dict[str, Any]:
    """Return the JSON object of a finding."""
    return {name: value for name, value in asdict(finding).items() if value is not None}
