"""The handshake with a kernel: connect, send `Hello`, wait for `Welcome`.

Runs on the event loop of the connecting process: a bridge, a command, or a Jupyter server.
"""

import asyncio
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import Record
from mcp_notebook.errors import FrameError, LinkError, VersionMismatch
from mcp_notebook.wire import frames, messages
from mcp_notebook.wire.frames import FrameProtocol

CONNECT_TIMEOUT = 5.0
"""Seconds that a kernel has to send its welcome."""


@dataclass(frozen=True)
class Greeting:
    """An open conversation with a kernel."""

    connection: FrameProtocol
    welcome: messages.Welcome
    """The kernel's answer."""


async def greet(
    record: Record, *, inspects: bool = False, seconds: float = CONNECT_TIMEOUT
) -> Greeting:
    """Connect to a kernel, and wait for its welcome.

    Args:
        record: The kernel's record.
        inspects: See `messages.Hello`.
        seconds: How long the kernel has to send its welcome.

    Raises:
        LinkError: The kernel does not answer, or refuses the connection.
    """
    name = record.name
    try:
        async with asyncio.timeout(seconds):
            connection = await _connect(record)
            own_end = connection.transport.get_extra_info("socket")
            own_end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, frames.SEND_BUFFER)
            try:
                return Greeting(connection, await _say_hello(record, connection, inspects))
            except BaseException:
                connection.transport.close()
                raise
    except TimeoutError:
        raise LinkError(f"The kernel of {name!r} did not answer within {seconds:g} s.") from None
    except OSError as error:
        raise LinkError(f"The kernel of {name!r} cannot be reached: {error}.") from None
    except FrameError as error:
        raise LinkError(
            f"The process that answers for {name!r} is not a kernel of mcp-notebook: {error}"
        ) from None


async def _say_hello(
    record: Record,
    connection: FrameProtocol,
    inspects: bool,  # noqa: FBT001 - as `greet`
) -> messages.Welcome:
    connection.send(messages.Hello(version=__version__, token=record.token, inspects=inspects))
    match await connection.read():
        case (messages.Welcome() as welcome, _):
            if welcome.protocol != messages.PROTOCOL_VERSION:
                raise VersionMismatch(kernel=welcome.protocol, bridge=messages.PROTOCOL_VERSION)
            return welcome
        case (messages.Refused() as refused, _):
            raise LinkError(f"{record.name}: {refused.message}")
        case None:
            raise LinkError(f"The kernel of {record.name!r} closed the connection.")
        case (message, _):
            raise FrameError(f"its first message is {message.type!r}.")


async def _connect(record: Record) -> FrameProtocol:
    loop = asyncio.get_running_loop()
    if record.socket is None:
        _, connection = await loop.create_connection(FrameProtocol, "127.0.0.1", record.port or 0)
        return connection
    owner = Path(record.socket).stat().st_uid  # noqa: ASYNC240 - a local socket, instant
    if owner != os.getuid():
        raise PermissionError(f"{record.socket} belongs to another user")
    _, connection = await loop.create_unix_connection(FrameProtocol, record.socket)
    return connection
