"""Shows what a check found: a table and sentences for people, one object for programs.

Runs in the process of the command. Colors are for terminals only; texts of tools are data.
"""

import sys
from collections.abc import Sequence
from typing import Any

from mcp_notebook.check.cost import count_entry, count_tokens, describe_cost, load_tokenizer
from mcp_notebook.check.findings import Finding, Severity, describe_finding
from mcp_notebook.check.subject import Answer, CheckedTool, Subject
from mcp_notebook.text.terminal import print_check, print_output, print_table
from mcp_notebook.text.wording import count

_MARKS: dict[Severity, str] = {"error": "✗", "warning": "!", "note": "-"}
_TITLES = ("Tool", "Entry", "Calls", "Seconds", "Characters", "Tokens", "Changes", "Findings")


def print_report(subject: Subject, findings: Sequence[Finding]) -> None:
    """Print a line for each tool, and the findings."""
    rows = [_make_row(subject, tool, findings) for tool in subject.list_tools()]
    if sys.stdout.isatty():
        print_table(_TITLES, rows)
    else:
        print_output("\n".join(_align([_TITLES, *rows])))
    print_output(describe_cost(subject))
    for name, reason in subject.skipped.items():
        print_check("-", f"{name}: not called. {reason}", is_wrong=False)
    for finding in findings:
        place = ", ".join(filter(None, [finding.tool, finding.place]))
        text = f"{place or 'notebook'}: {finding.reason} {finding.advice} [{finding.rule}]"
        print_check(_MARKS[finding.severity], text, is_wrong=finding.severity != "note")
    wrong = sum(finding.severity != "note" for finding in findings)
    print_output("No findings." if not wrong else f"{count(wrong, 'finding')}.")


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns of the same width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def describe_report(subject: Subject, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the JSON object of a check."""
    return {
        "notebook": str(subject.notebook),
        "tokensAreEstimated": load_tokenizer() is None,
        "tools": [_describe_tool(subject, tool) for tool in subject.list_tools()],
        "findings": [describe_finding(finding) for finding in findings],
    }


def _describe_tool(subject: Subject, tool: CheckedTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "entryTokens": count_entry(tool),
        "calls": [
            {
                "arguments": dict(answer.arguments),
                "client": "copy" if answer in subject.trials else answer.era,
                "seconds": round(answer.seconds, 3),
                "characters": len(answer.text),
                "tokens": count_tokens(answer.text),
                "isError": answer.is_error or answer.failure is not None or answer.is_late,
            }
            for answer in _list_answers(subject, tool)
        ],
        "notCalled": subject.skipped.get(tool.name),
    }


def _list_answers(subject: Subject, tool: CheckedTool) -> list[Answer]:
    return [each for each in (*subject.trials, *subject.answers) if each.tool == tool.name]


def _make_row(subject: Subject, tool: CheckedTool, findings: Sequence[Finding]) -> tuple[str, ...]:
    answers = _list_answers(subject, tool)
    texts = [answer.text for answer in answers]
    trials = [trial for trial in subject.trials if trial.tool == tool.name]
    known = [trial.changes for trial in trials if trial.changes is not None]
    changes = "yes" if any(known) else "none" if known else "?"
    wrong = sum(each.tool == tool.name and each.severity != "note" for each in findings)
    return (
        tool.name,
        f"{count_entry(tool):,}",
        str(len(answers)),
        f"{max((answer.seconds for answer in answers), default=0):.2f}",
        f"{max(map(len, texts), default=0):,}",
        f"{max(map(count_tokens, texts), default=0):,}",
        changes if trials else "-",
        str(wrong),
    )
