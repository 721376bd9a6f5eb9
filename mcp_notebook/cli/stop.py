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
    from mcp_notebook.bridge.kernels.link import Link
    from mcp_notebook.bridge.kernels.links import Links
    from mcp_notebook.discovery.records import Record
    from mcp_notebook.wire import messages

REASON = "The user stopped the call with `mcp-notebook stop`."
"""The reason that a stopped call is answered with."""
_BY = "you, with `mcp-notebook stop`"
"""As the notebook shows who stopped a call."""
_LIMIT = 10.0
"""Seconds that a kernel has to report the end of a call; it waits two for unresponsive code."""

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
    """Its notebook: its name, or the id of its kernel if several notebooks have that name."""
    link: "Link"
    info: "messages.CallInfo"

    @property
    def name(self) -> str:
        """The call as the user can write it."""
        return f"{self.label}:{self.info.number}"


async def stop_call(settings: Settings, name: str | None, *, seconds: float = _LIMIT) -> None:
    """Stop a call, and report how it ended.

    Args:
        settings: Where to look for kernels.
        name: The call as the user wrote it; None to list all calls.
        seconds: How long the kernel has to answer.

    Raises:
        CallError: The call does not exist, its notebook is ambiguous, or its end is not known.
    """
    import anyio

    from mcp_notebook.bridge.kernels.catalog import Catalog
    from mcp_notebook.bridge.kernels.links import Links
    from mcp_notebook.discovery.records import list_live_records
    from mcp_notebook.wire import messages

    async with Links(Catalog()) as links:

        async def connect(record: "Record") -> None:
            try:
                await links.connect(record)
            except LinkError as error:
                print_note(str(error))

        async with anyio.create_task_group() as tasks:  # those that hang are waited for together
            for record in list_live_records(settings.records_folder):
                tasks.start_soon(connect, record)
        calls = _list_calls(links)
        if name is None:
            _print_calls(calls)
            return
        call = _choose_call(calls, name)
        number = call.info.number
        try:
            answer, _ = await call.link.requests.ask_for_panel(
                lambda id_: messages.StopCall(id=id_, number=number, reason=REASON, by=_BY), seconds
            )
        except TimeoutError:
            raise CallError(
                f"The kernel of {call.link.record.name!r} did not report within {seconds:g} s "
                "whether the call ended. `mcp-notebook stop` lists the calls that still run."
            ) from None
        print_output(_describe_end(call, answer))


def _list_calls(links: "Links") -> list[_StoppableCall]:
    open_links = sorted(links.open_links, key=lambda link: (link.record.name, link.record.id))
    names = Counter(link.record.name for link in open_links)
    return [
        _StoppableCall(
            link.record.name if names[link.record.name] == 1 else link.record.id, link, info
        )
        for link in open_links
        for info in link.initial_calls
    ]


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
        and notebook in ("", call.label, call.link.record.id, call.link.record.name)
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
