"""``mcp-notebook replay FILE``: makes the calls of a recording again, and compares what comes back.

Runs in a short-lived process that links kernels directly, without MCP. The lines about calls go to
stdout, everything else to stderr.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any, Literal

from mcp_notebook.bridge.headless.notebook_reader import read_notebook
from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.shell_kernels import LinkedKernels, link_kernels
from mcp_notebook.call_cells import (
    KEY,
    RecordedCall,
    RecordedCell,
    describe_call,
    hash_structured,
    holds_secret,
    make_outputs,
    read_call_cells,
)
from mcp_notebook.cli.shell_consent import ask_on_terminal
from mcp_notebook.cli.shell_secrets import ask_for_secrets
from mcp_notebook.content import Result
from mcp_notebook.errors import AmbiguousTool, CallError, RecordingError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_data, print_note, print_output
from mcp_notebook.text.wording import count, make_printable

_STOPPED = ("cancelled", "timed out", "lost")
"""States of calls that somebody or something ended, so that nothing can be compared."""
_MAX_CALL = 72
"""Characters of a call on its line."""
_MAX_DIFF = 20
"""Lines of a difference."""

Outcome = Literal["same", "different", "not made"]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What is to be replayed, as typed in a shell."""

    file: Path
    """The recording."""
    notebook: Path | None = None
    """The notebook, which is run unless it is open; None for all open notebooks."""
    is_confirmed: bool = False
    """Whether to run tools that ask before each call without a question."""
    as_json: bool = False
    """Whether to print one JSON object in place of lines."""


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """What came of one call."""

    cell: RecordedCell
    outcome: Outcome
    details: Sequence[str] = ()
    """Lines: the difference, or why the call was not made."""


async def replay_calls(settings: Settings, replay: Replay) -> bool:
    """Make the calls of a recording again, and return whether all of them gave the same.

    Raises:
        NotebookError: A notebook cannot be read or run.
        RecordingError: The file has no recorded calls.
    """
    _, notebook = read_notebook(replay.file.expanduser())
    cells = list(read_call_cells(notebook))
    if not cells:
        raise RecordingError(
            f"{replay.file} has no recorded calls. `%mcp record FILE` in a notebook with tools "
            "writes such a file."
        )
    source = Path(str(notebook.metadata.get(KEY, {}).get("records", ""))).stem
    comparisons = []
    async with link_kernels(settings, replay.notebook) as kernels:
        for failure in kernels.failures:
            print_note(str(failure))
        for cell in cells:
            comparison = await _replay_cell(settings, replay, kernels, cell, source)
            comparisons.append(comparison)
            if not replay.as_json:
                _print_comparison(comparison)
    if replay.as_json:
        print_data(json.dumps(_describe(comparisons), indent=2, ensure_ascii=False))
    else:
        print_note(_summarize(comparisons))
    return all(comparison.outcome == "same" for comparison in comparisons)


async def _replay_cell(
    settings: Settings, replay: Replay, kernels: LinkedKernels, cell: RecordedCell, source: str
) -> _Comparison:
    call = cell.call
    reason = _explain_skip(call)
    if reason is not None:
        return _Comparison(cell=cell, outcome="not made", details=[reason])
    try:
        entry = _find_tool(kernels.catalog, call.tool, source)
        arguments = await _complete_arguments(call, entry)
        if not replay.is_confirmed:
            await ask_on_terminal(settings, entry, arguments)
        result = await kernels.links.call(
            entry, arguments, Listener(), confirmed=entry.tool.revision
        )
    except CallError as error:
        return _Comparison(cell=cell, outcome="not made", details=str(error).splitlines())
    details = list(_list_differences(cell, result))
    return _Comparison(cell=cell, outcome="different" if details else "same", details=details)


def _explain_skip(call: RecordedCall) -> str | None:
    """Return why a call cannot be made again; None if it can."""
    if call.state in _STOPPED:
        return f"It had no result to compare with: it was {call.state}."
    if not call.is_complete:
        return "Its arguments were too large to be recorded."
    return None


async def _complete_arguments(call: RecordedCall, entry: CatalogEntry) -> dict[str, Any]:
    """Return the arguments of a recorded call, with its secrets.

    Raises:
        CallError: It had secrets, and nobody can be asked for them.
    """
    public = {name: value for name, value in call.arguments.items() if not holds_secret(value)}
    arguments = await ask_for_secrets(entry.tool.input_schema, public)
    missing = [name for name in call.arguments if name not in arguments]
    if missing:
        raise CallError(
            f"Secrets are not recorded: {', '.join(missing)}. In a terminal, this command asks "
            "for those that the tool requires."
        )
    return arguments


def _find_tool(catalog: Catalog, name: str, source: str) -> CatalogEntry:
    """Return the tool of a recorded call.

    Raises:
        CallError: There is none.
    """
    try:
        return catalog.find(name)
    except AmbiguousTool:
        with suppress(CallError):
            return catalog.find(f"{source}.{name}")
        raise


# -- comparing -------------------------------------------------------------------------------------


def _list_differences(cell: RecordedCell, result: Result) -> Iterator[str]:
    """Yield lines about what differs between a recorded result and a new one."""
    state = "failed" if result.is_error else "done"
    before, now = cell.outputs, make_outputs(result, cell.call.state)
    if (cell.call.state == "failed") != result.is_error:
        yield f"It was {cell.call.state}, and now it is {state}."
    old_lines, new_lines = _list_lines(before), _list_lines(now)
    if old_lines != new_lines:
        lines = list(unified_diff(old_lines, new_lines, "recorded", "now", lineterm="", n=1))
        yield from lines[:_MAX_DIFF]
        if len(lines) > _MAX_DIFF:
            yield f"... {count(len(lines) - _MAX_DIFF, 'more line')}"
        return
    if len(before) != len(now):
        yield f"It had {count(len(before), 'output')}, and now it has {len(now)}."
        return
    pictures = [[_list_data(output) for output in outputs] for outputs in (before, now)]
    for number, (old, new) in enumerate(zip(*pictures, strict=True), start=1):
        for mime_type in sorted(old.keys() | new.keys()):
            if old.get(mime_type) != new.get(mime_type):
                yield f"Output {number} ({mime_type}) is another one."
    if cell.call.structured_hash != hash_structured(result):
        yield "The structured content is another one."


def _list_lines(outputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what outputs say as text."""
    lines: list[str] = []
    for output in outputs:
        if output["output_type"] == "error":
            lines += output["traceback"]
        elif output["output_type"] == "stream":  # the cell was run again in Jupyter
            lines += str(output["text"]).splitlines()
        else:
            lines += str(output.get("data", {}).get("text/plain", "")).splitlines()
    return lines


def _list_data(output: Mapping[str, Any]) -> dict[str, str]:
    """Return what an output has besides text, by MIME type; base64 may be broken into lines."""
    data = output.get("data", {})
    return {
        mime_type: "".join(str(value).split())
        for mime_type, value in data.items()
        if not mime_type.startswith("text/")
    }


# -- output ----------------------------------------------------------------------------------------


def _print_comparison(comparison: _Comparison) -> None:
    call = comparison.cell.call
    text = describe_call(call.tool, call.arguments, _MAX_CALL)
    print_output(f"{comparison.cell.number:>4}  {comparison.outcome:<9}  {text}")
    for line in comparison.details:
        print_output(f"      {make_printable(line)}")


def _summarize(comparisons: Sequence[_Comparison]) -> str:
    counts = Counter(comparison.outcome for comparison in comparisons)
    parts = [f"{number:,} {outcome}" for outcome, number in counts.items()]
    return f"{count(len(comparisons), 'call')}: {', '.join(parts)}."


def _describe(comparisons: Sequence[_Comparison]) -> dict[str, Any]:
    return {
        "calls": [
            {
                "number": comparison.cell.number,
                "tool": comparison.cell.call.tool,
                "arguments": comparison.cell.call.arguments,
                "outcome": comparison.outcome,
                "details": list(comparison.details),
            }
            for comparison in comparisons
        ]
    }
