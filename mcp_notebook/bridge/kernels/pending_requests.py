"""Requests to one kernel that await their replies, each by its number.

Runs on the bridge's event loop. What is asked and what the replies mean is left to whoever asks.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import messages

_T = TypeVar("_T")


class PendingRequests(Generic[_T]):
    """The requests of one kind that a kernel has not answered yet.

    Args:
        next_id: Returns a number that no other request of the conversation has.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(
        self, next_id: Callable[[], int], send: Callable[[messages.AnyMessage], None]
    ) -> None:
        self._next_id = next_id
        self._send = send
        self._replies: dict[int, asyncio.Future[_T]] = {}

    async def ask(
        self,
        make_message: Callable[[int], messages.AnyMessage],
        *,
        seconds: float | None,
        make_withdrawal: Callable[[int], messages.AnyMessage] | None = None,
    ) -> _T:
        """Send a request, and return its reply.

        Args:
            make_message: Makes the request, which has this number.
            seconds: How long to wait; None: the caller sees to that.
            make_withdrawal: Makes what is sent if nobody waits for the reply any more.

        Raises:
            KernelGone: The kernel is gone.
            TimeoutError: It has not answered in time; what it says later is ignored.
        """
        number = self._next_id()
        reply: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        try:
            self._send(make_message(number))
            async with asyncio.timeout(seconds):
                return await reply
        except asyncio.CancelledError:
            if make_withdrawal is not None:
                self._send(make_withdrawal(number))
            raise
        finally:
            del self._replies[number]

    def take(self, number: int, reply: _T) -> None:
        """Take what the kernel sent; nothing happens if nobody waits for it."""
        request = self._replies.get(number)
        if request is not None and not request.done():
            request.set_result(reply)

    def end(self, reason: str) -> None:
        """End all requests without a reply, for this reason."""
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(KernelGone(reason))
