"""Sends the head of a response together with what follows it: one packet, one wake-up.

Runs on the bridge's event loop, between uvicorn and a connection's transport. uvicorn writes a head
and a body one after the other, and each write is a system call that may wake the client.
"""

import asyncio
from typing import Any

_HEAD = b"HTTP/1.1 "


class HeldHeads:
    """A connection's transport, but for its writes.

    Args:
        transport: The transport.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data; a head waits for what is written next, until the loop does something else."""
        if not data:
            return  # asyncio's transport, from Python 3.12 on, would never be done with it
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines([head, data])
        elif data.startswith(_HEAD):
            self._head = data
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection when everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)
