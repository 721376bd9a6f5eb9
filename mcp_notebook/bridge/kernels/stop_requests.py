"""Lists and stops the calls in a kernel, without a lasting link.

Runs on the event loop of a command or a bridge. Each request is a conversation of its own with the
kernel, which answers even while its main thread is busy.
"""

import asyncio

from mcp_notebook.discovery.greeting import greet
from mcp_notebook.discovery.records import Record
from mcp_notebook.errors import FrameError, LinkError
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import FrameProtocol

_BY = "you, with `mcp-notebook stop`"
"""Who stops calls here, for the notebook's author."""
STOP_TIMEOUT = 10.0
"""Seconds that a kernel has to report the end of a call; it waits two for unresponsive code."""


async def list_calls(record: Record) -> list[messages.CallInfo]:
    """Return the calls that wait, run or are still stopping in a kernel, oldest first.

    Raises:
        LinkError: The kernel does not answer, or refuses the connection.
    """
    greeting = await greet(record)
    greeting.connection.transport.close()
    return greeting.welcome.calls


async def stop_call(
    record: Record, number: int, reason: str, *, seconds: float = STOP_TIMEOUT
) -> messages.CallStopped:
    """Stop a call, and wait until it has ended for its client.

    Args:
        record: The kernel's record.
        number: The call's number in the kernel's log.
        reason: A sentence for the client that made the call.
        seconds: How long the kernel has to report the end.

    Raises:
        LinkError: The kernel does not answer, or refuses the connection.
    """
    greeting = await greet(record)
    try:
        greeting.connection.send(messages.StopCall(id=1, number=number, reason=reason, by=_BY))
        async with asyncio.timeout(seconds):
            return await _read_answer(record, greeting.connection)
    except (TimeoutError, FrameError, OSError) as error:
        raise LinkError(
            f"The kernel of {record.name!r} did not report whether the call ended ({error!r}). "
            "`mcp-notebook stop` lists the calls that are still running."
        ) from None
    finally:
        greeting.connection.transport.close()


async def _read_answer(record: Record, connection: FrameProtocol) -> messages.CallStopped:
    while (frame := await connection.read()) is not None:
        match frame[0]:
            case messages.CallStopped() as answer:
                return answer
            case messages.Goodbye() as goodbye:
                raise LinkError(f"{record.name}: {goodbye.reason} Its calls have ended with it.")
    raise LinkError(f"The kernel of {record.name!r} ended, and its calls with it.")
