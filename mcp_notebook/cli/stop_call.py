"""``mcp-notebook call --stop``: stops a call in any live kernel of the user, or lists the calls.

Apart from `call`, which imports more: somebody waits for this. Kernels answer on their link, which
no cell and no call holds up.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_notebook.bridge.kernels import stop_requests
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import CallError, LinkError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output, print_table
from mcp_notebook.wire import messages

REASON = "The user stopped the call with `mcp-notebook call --stop`."
_NO_CALLS = "No call waits or runs."


@dataclass(frozen=True)
class _StoppableCall:
    """A call in one of the kernels."""

    label: str
    """The notebook: its name, or the kernel's id where two have the same name."""
    record: Record
    info: messages.CallInfo

    @property
    def name(self) -> str:
        """What stands for the call among those of all notebooks."""
        return f"{self.label}:{self.info.number}"


async def stop_call(settings: Settings, name: str | None) -> None:
    """Stop a call, and print what became of it; list all calls if there is no name.

    Args:
        settings: Where the kernels' records are.
        name: ``12`` or ``sales:12``: the call's number in its kernel's log, and its notebook.

    Raises:
        CallError: No call has this name, or several have.
        LinkError: The kernel does not answer.
    """
    records = list_live_records(settings.records_folder)
    calls = await _find_calls(records)
    if name is None:
        _print_calls(calls)
        return
    call = _choose_call(calls, name)
    answer = await stop_requests.stop_call(call.record, call.info.number, REASON)
    print_output(_describe_end(call, answer))


async def _find_calls(records: Sequence[Record]) -> list[_StoppableCall]:
    """Return the calls of all kernels; those that do not answer are named on stderr."""
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
    """Return the call that is meant.

    Raises:
        CallError: None is, or several may be.
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
        raise CallError(f"Several calls are {name!r}: write one of {names}.")
    others = f"These wait or run: {names}." if names else "There is no other call to stop."
    raise CallError(f"No call {name!r} waits or runs; it may have ended. {others}")


def _describe_end(call: _StoppableCall, answer: messages.CallStopped) -> str:
    what = f"{call.name} ({call.info.tool})"
    if answer.tool is None:
        return f"{what} had ended already."
    if answer.is_stopping:
        return (
            f"Stopped {what}. Its client has an answer, but its code has not reacted yet: "
            "`mcp-notebook call --stop` lists it until it has."
        )
    if answer.state == "cancelled":
        return f"Stopped {what}."
    return f"{what} ended by itself meanwhile: {answer.state}."


def _print_calls(calls: Sequence[_StoppableCall]) -> None:
    rows = [(call.name, call.info.tool, call.info.client, call.info.doing) for call in calls]
    if not rows:
        print_note(_NO_CALLS)
    elif sys.stdout.isatty():
        print_table(("Call", "Tool", "Client", "What it does"), rows)
    else:
        for row in rows:
            print_output("\t".join(row))
