"""Shows what a check found, and about how many tokens the tools cost a model.

Runs in the process of the command. Colors are for terminals only; texts of tools are data.
"""

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from msgspec import to_builtins

from mcp_notebook.check.drift import Drift
from mcp_notebook.check.findings import Finding, Severity
from mcp_notebook.check.subject import Answer, CheckedTool, Subject
from mcp_notebook.text.terminal import print_check, print_data, print_output, print_table
from mcp_notebook.text.wording import count

_MARKS: dict[Severity, str] = {"error": "✗", "warning": "!", "note": "-"}
_TITLES = ("Tool", "Entry", "Calls", "Seconds", "Answer", "Changes", "Found")
_CHANGE_TITLES = ("Tool", "Change", "For callers")
_CHARACTERS = 4
"""Characters of a token on average, in English text and JSON."""
_INDENT = 4
"""Columns before a finding's text."""


def print_report(subject: Subject, findings: Sequence[Finding]) -> None:
    """Print a line for each tool, and the findings."""
    rows = [_make_row(subject, tool, findings) for tool in subject.list_tools()]
    if not rows:
        print_output("There are no tools to call.")
    elif sys.stdout.isatty():
        print_table(_TITLES, rows)
    else:
        print_output("\n".join(_align([_TITLES, *rows])))
    if rows:
        print_output(_wrap(describe_cost(subject)))
    uncalled: dict[str, list[str]] = {}
    for name, reason in subject.skipped.items():
        uncalled.setdefault(reason, []).append(name)
    for reason, names in uncalled.items():
        print_check("-", _wrap(f"Not called ({reason}): {', '.join(names)}."), is_wrong=False)
    for finding in findings:
        is_wrong = finding.severity != "note"
        print_check(_MARKS[finding.severity], _describe(finding), is_wrong=is_wrong)
    wrong = sum(finding.severity != "note" for finding in findings)
    print_output("No findings." if not wrong else f"{count(wrong, 'finding')}.")


def print_drift(drift: Drift) -> None:
    """Print what has changed since the lock, if there is one."""
    if drift.lock is not None:
        words, end = ("Changed", "; `--lock` accepts it:") if drift.changes else ("Unchanged", ".")
        print_output(f"{words} since it was locked on {drift.lock.day}{end}")
    if drift.changes:
        print_table(_CHANGE_TITLES, [(each.name, each.text, each.level) for each in drift.changes])


def print_json(findings: Sequence[Finding], drift: Drift) -> None:
    """Print the findings, and what has changed since the lock, as one JSON object."""
    report = {
        "findings": [asdict(finding) for finding in findings],
        "locked": None if drift.lock is None else drift.lock.locked.isoformat(),
        "changes": to_builtins(drift.changes),
    }
    print_data(json.dumps(report, indent=2, ensure_ascii=False))


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text, about."""
    return -(-len(text) // _CHARACTERS)


def count_entry(tool: CheckedTool) -> int:
    """Return the tokens of a tool that a model reads in each turn: not of its output schema."""
    entry = tool.entry
    parameters = json.dumps(entry.get("inputSchema", {}), ensure_ascii=False, separators=(",", ":"))
    return sum(map(count_tokens, (tool.name, str(entry.get("description", "")), parameters)))


def describe_cost(subject: Subject) -> str:
    """Return the tokens of all entries as a sentence."""
    total = sum(map(count_entry, subject.list_tools()))
    return f"A model reads about {count(total, 'token')} of entries in each turn."


def _describe(finding: Finding) -> str:
    """Return a finding as a paragraph; further lines of its reason, such as a traceback, follow."""
    reason, _, details = finding.reason.partition("\n")
    place = ", ".join(filter(None, [finding.tool, finding.place])) or "notebook"
    text = _wrap(f"{place}: {reason} {finding.advice} [{finding.rule}]")
    return f"{text}\n{details}" if details else text


def _wrap(text: str) -> str:
    """Return a paragraph in lines as wide as the terminal; for a program, in one."""
    if not sys.stdout.isatty():
        return text
    width = max(shutil.get_terminal_size().columns - _INDENT, 20)
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns of the same width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


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
        f"{max(map(count_tokens, texts), default=0):,}",
        changes if trials else "-",
        str(wrong),
    )
