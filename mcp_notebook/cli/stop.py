"""``mcp-notebook stop [CALL]``: stops a call, or lists all calls.

Talks to kernels over their link, without MCP.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.runner import run_command
from mcp_notebook.errors import CallError, LinkError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output, print_table

if TYPE_CHECKING:
    from mcp_notebook.discovery.records import Record
    from mcp_notebook.wire import messages

REASON = "The user stopped the call with `mcp-notebook stop`."
"""The reason that a stopped call is answered with."""

app = typer.Typer(add_completion=False)


@app.command(cls=Command, epilog=format_examples("mcp-notebook stop", "mcp-notebook stop sales:12"))
def stop(
    call: Annotated[
        str | None,
        typer.Argument(
            metavar="CALL",
            help="The call's number from `%mcp log`: 12, or sales:12 if several notebooks have a "
            "call 12. If none is given, the calls are listed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Stop a waiting or running call, even while its kernel is busy."""
    run_command(stop_call, Settings.from_environment(), call)


@dataclass(frozen=True)
class _StoppableCall:
    """A call in one of the kernels."""

    label: str
    """The notebook: its name, or the kernel's id where two have the same name."""
    record: "Record"
    info: "messages.CallInfo"

    @property
    def name(self) -> str:
        """The call's name among the calls of all notebooks."""
        return f"{self.label}:{self.info.number}"


async def stop_call(settings: Settings, name: str | None) -> None:
    """Stop a call and print the outcome, or list all calls if no name is given.

    Args:
        settings: Names the folder of the kernels' records.
        name: ``12`` or ``sales:12``: the call's number in its kernel's log, and its notebook.

    Raises:
        CallError: No call has this name, or several do.
        LinkError: The kernel does not answer.
    """
    from mcp_notebook.bridge.kernels import stop_requests
    from mcp_notebook.discovery.records import list_live_records

    records = list_live_records(settings.records_folder)
    calls = await _find_calls(records)
    if name is None:
        _print_calls(calls)
        return
    call = _choose_call(calls, name)
    answer = await stop_requests.stop_call(call.record, call.info.number, REASON)
    print_output(_describe_end(call, answer))


async def _find_calls(records: Sequence["Record"]) -> list[_StoppableCall]:
    """Return the calls of all kernels; kernels that do not answer are named on stderr."""
    import asyncio

    from mcp_notebook.bridge.kernels import stop_requests

    names = Counter(record.name for record in records)
    answers = await asyncio.gather(*map(stop_requests.list_calls, records), return_exceptions=True)
    calls = []
    for record, answer in zip(records, answers, strict=True):
        label = record.name if names[record.name] == 1 else record.id
        if isinstance(answer, LinkError):
            print_note(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            calls += [_StoppableCall(label, record, info) for info in answer]
    return calls


def _choose_call(calls: Sequence[_StoppableCall], name: str) -> _StoppableCall:
    """Return the call that a name refers to.

    Raises:
        CallError: No call has this name, or several do.
    """
    notebook, _, number = name.rpartition(":")
    fitting = [
        call
        for call in calls
        if str(call.info.number) == number
        and notebook in ("", call.label, call.record.id, call.record.name)
    ]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(call.name for call in fitting or calls)
    if fitting:
        raise CallError(f"{name!r} is ambiguous: write one of {names}.")
    others = f"Waiting or running: {names}." if names else "No other call is waiting or running."
    raise CallError(f"No call {name!r} is waiting or running; it may have ended. {others}")


def _describe_end(call: _StoppableCall, answer: "messages.CallStopped") -> str:
    what = f"{call.name} ({call.info.tool})"
    if answer.tool is None:
        return f"{what} had already ended."
    if answer.is_stopping:
        return (
            f"Stopped {what}. Its client has been answered, but its code is still running: "
            "`mcp-notebook stop` lists it until it ends."
        )
    if answer.state == "cancelled":
        return f"Stopped {what}."
    return f"{what} had ended in the meantime: {answer.state}."


def _print_calls(calls: Sequence[_StoppableCall]) -> None:
    rows = [(call.name, call.info.tool, call.info.client, call.info.doing) for call in calls]
    if rows:
        print_table(("Call", "Tool", "Client", "State"), rows)
    else:
        print_note("No call is waiting or running.")
