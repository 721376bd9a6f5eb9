"""Runs a notebook, checks its tools, and prints the findings.

Runs in the process of the command, on its event loop. The kernel is one of its own, which ends
with the command.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from mcp_notebook.bridge.headless.cell_progress import CellProgress, show_on_stderr
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.bridge.headless.notebook_reader import list_code_cells, read_notebook
from mcp_notebook.bridge.http_app import open_own_bridge
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.forms.tool_form import make_tool_form
from mcp_notebook.check.answers import judge_answers
from mcp_notebook.check.calls import call_examples, try_examples
from mcp_notebook.check.descriptions import judge_words
from mcp_notebook.check.direct_uses import find_direct_uses
from mcp_notebook.check.drift import find_drift
from mcp_notebook.check.findings import Finding, is_clean, sort_findings
from mcp_notebook.check.objects import judge_objects
from mcp_notebook.check.report import print_drift, print_json, print_report
from mcp_notebook.check.schemas import judge_schemas
from mcp_notebook.check.subject import CheckedTool, CodeCell, Subject, find_definition
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.lock_file import find_path, write_lock
from mcp_notebook.protocol.versions import VERSIONS
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note
from mcp_notebook.wire import messages

Check: TypeAlias = Callable[[Subject], Iterable[Finding]]
CHECKS: Sequence[Check] = (
    judge_answers,
    find_direct_uses,
    judge_words,
    judge_schemas,
    judge_objects,
)
"""The checks, in the order in which they are made."""
EXAMPLE_LIMIT = 30.0
"""Seconds that a call with an example may take by default."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What to check, as typed in a shell."""

    notebook: Path
    limit: float = EXAMPLE_LIMIT
    """Seconds that a call with an example may take."""
    calls_all: bool = False
    """Whether to call tools that are not read-only."""
    locks: bool = False
    """Whether to write the lock."""
    as_json: bool = False
    """Whether to print the report for programs."""


async def examine(settings: Settings, examination: Examination) -> bool:
    """Check a notebook's tools, print the findings, and return whether there are none but notes.

    Raises:
        NotebookError: The notebook cannot be run, or its lock cannot be written.
    """
    subject = await run_subject(settings, examination)
    findings, drift = find_all(subject), find_drift(subject)
    if examination.as_json:
        print_json(findings, drift)
    else:
        print_report(subject, findings)
        print_drift(drift)
    if not examination.locks:
        return is_clean(findings) and all(each.level == "compatible" for each in drift.changes)
    if subject.failures:
        raise NotebookError("Not locked, because a cell fails: what it declares is not known.")
    write_lock(subject.notebook, drift.entries, drift.lock)
    print_note(f"Locked in {find_path(subject.notebook)}.")
    return is_clean(findings)


async def examine_live(settings: Settings, kernel_id: str, sources: Sequence[str]) -> bool:
    """Check the tools of a live kernel as `examine` does; it calls them in copies of the kernel.

    Args:
        settings: Name the folder of the kernels' records.
        kernel_id: The id of the kernel's record.
        sources: The source of the cells that have run, by their execution count.

    Raises:
        NotebookError: The kernel is gone.
        LinkError: It does not answer.
    """
    records = list_live_records(settings.records_folder)
    record = next((record for record in records if record.id == kernel_id), None)
    if record is None:
        raise NotebookError("The kernel is gone.")
    cells = [
        CodeCell(number=number, source=source) for number, source in enumerate(sources) if source
    ]
    async with Links(Catalog()) as links:
        await links.connect(record)
        link = links.open_links[0]
        tools = [describe_tool(info, cells) for info in link.initial_tools]
        subject = Subject(notebook=Path(record.notebook or record.name), cells=cells, tools=tools)
        await try_examples(subject, link, limit=EXAMPLE_LIMIT)
    names = {None, *(tool.info.name for tool in tools)}
    # Cells that ran earlier may have declared tools that are gone.
    findings = [finding for finding in find_all(subject) if finding.tool in names]
    print_report(subject, findings)
    return is_clean(findings)


def find_all(subject: Subject) -> list[Finding]:
    """Make all checks, and return the findings in order, without those that the author ignores."""
    findings = sort_findings(finding for check in CHECKS for finding in check(subject))
    ignored = {(cell.number, rule) for cell in subject.cells for rule in cell.ignored_rules}
    return [finding for finding in findings if (finding.cell, finding.rule) not in ignored]


async def run_subject(settings: Settings, examination: Examination) -> Subject:
    """Run a notebook, call its tools with their examples, and return what is checked.

    Raises:
        NotebookError: The notebook cannot be run.
    """
    notebook = examination.notebook
    version = read_notebook(notebook)
    cells = [
        CodeCell(number=number, source=cell.source)
        for number, cell in enumerate(list_code_cells(version[1]).cells, start=1)
    ]
    failures: list[CellProgress] = []
    with show_on_stderr() as show:
        progress = partial(_note_progress, show, failures)
        async with (
            # To find out about all cells; those that fail are findings.
            run_notebook(
                notebook, settings, progress=progress, version=version, allow_errors=True
            ) as running,
            open_own_bridge(settings, running.record, running.describe_end) as bridge,
        ):
            tools = [describe_tool(info, cells) for info in bridge.link.initial_tools]
            subject = Subject(notebook=notebook, cells=cells, tools=tools, failures=failures)
            await call_examples(
                subject, bridge, limit=examination.limit, calls_all=examination.calls_all
            )
            return subject


def _note_progress(
    show: Callable[[CellProgress], None], failures: list[CellProgress], progress: CellProgress
) -> None:
    if progress.failure is not None:
        failures.append(progress)
        progress = replace(progress, failure=None)  # it is shown among the findings
    show(progress)


def describe_tool(info: messages.ToolInfo, cells: Sequence[CodeCell]) -> CheckedTool:
    """Return a tool as the checks see it."""
    entry: Mapping[str, Any] = {}
    if info.kind == "tool":
        entry = make_tool_form(info.name, info, VERSIONS[-1])
    cell, function = find_definition(cells, info.name)
    return CheckedTool(info=info, entry=entry, cell=cell, function=function)
