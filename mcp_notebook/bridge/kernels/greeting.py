"""The beginning of each conversation with a kernel: connect, say hello, be welcomed.

Tested in ``tests/bridge/kernels/test_link.py``. Runs on the bridge's event loop.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook._version import __version__
from mcp_notebook.discovery import Record
from mcp_notebook.errors import FrameError, LinkError, VersionMismatch
from mcp_notebook.wire import frames, messages

CONNECT_TIMEOUT = 5.0
"""Seconds that a kernel has to send its welcome."""


@dataclass(frozen=True)
class Greeting:
    """A connection to a kernel that takes messages now."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    welcome: messages.Welcome
    """What the kernel said."""


async def greet(record: Record) -> Greeting:
    """Connect to a kernel, and wait for its welcome.

    Raises:
        LinkError: The kernel does not answer, or refuses the connection.
    """
    name = record.name
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            reader, writer = await _connect(record)
            try:
                return Greeting(reader, writer, await _say_hello(record, reader, writer))
            except BaseException:
                writer.close()
                raise
    except TimeoutError:
        raise LinkError(
            f"The kernel of {name!r} did not answer within {CONNECT_TIMEOUT:g} s."
        ) from None
    except OSError as error:
        raise LinkError(f"The kernel of {name!r} cannot be reached: {error}.") from None
    except FrameError as error:
        raise LinkError(
            f"The process that answers for {name!r} is not a kernel of mcp-notebook: {error}"
        ) from None


async def _say_hello(
    record: Record, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> messages.Welcome:
    for buffer in frames.encode(messages.Hello(version=__version__, token=record.token)):
        writer.write(buffer)
    match await frames.read_message(reader):
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


async def _connect(record: Record) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if record.socket is None:
        return await asyncio.open_connection("127.0.0.1", record.port, limit=frames.STREAM_LIMIT)
    owner = Path(record.socket).stat().st_uid  # noqa: ASYNC240 - a local socket, instant
    if owner != os.getuid():
        raise PermissionError(f"{record.socket} belongs to another user")
    return await asyncio.open_unix_connection(record.socket, limit=frames.STREAM_LIMIT)
