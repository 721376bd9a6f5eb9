"""Stops calls by their numbers, whoever made them, and says what became of them.

Runs on the endpoint's thread; only `CallStops.call_ended` is called on others. There is one for
each conversation.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call_log import CallLog, LoggedCall
from mcp_notebook.wire import messages


class StoppableCalls(Protocol):
    """The calls of a kernel: the `Invoker`."""

    log: CallLog
    """Tells of the end of calls."""

    @property
    def calls(self) -> Sequence[ActiveCall]:
        """The calls that wait or run."""

    def cancel(self, call: Any, reason: str) -> None:
        """Stop a call."""


class CallStops:
    """The calls that one bridge has asked to stop, and that have not ended.

    Args:
        calls: All calls of the kernel.
        send: Sends the bridge a message; on the endpoint's thread.
    """

    def __init__(self, calls: StoppableCalls, send: Callable[[messages.CallStopped], None]) -> None:
        self._calls = calls
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._open: list[tuple[int, ActiveCall]] = []
        """The ids of the requests, and their calls."""

    def stop(self, request: messages.StopCall) -> None:
        """Stop a call; the answer is sent when it has ended for its client."""
        call = next((call for call in self._calls.calls if call.number == request.number), None)
        if call is None:
            self._send(messages.CallStopped(id=request.id))
            return
        self._open.append((request.id, call))
        self._calls.log.subscribe(self)
        self._calls.cancel(call, request.reason)
        self._answer()

    def close(self) -> None:
        """Wait for no call any more: the bridge is gone."""
        if self._open:
            self._open.clear()
            self._calls.log.unsubscribe(self)

    def _answer(self) -> None:
        """Answer the requests whose calls have ended."""
        for request_id, call in [item for item in self._open if item[1].has_ended]:
            self._open.remove((request_id, call))
            self._send(
                messages.CallStopped(
                    id=request_id,
                    tool=call.tool,
                    state=str(call.state),
                    is_stopping=call.is_stopping,
                )
            )
        if not self._open:
            self._calls.log.unsubscribe(self)

    # -- what the log tells us ---------------------------------------------------------------------

    def call_came(self, call: LoggedCall) -> None:
        """Ignore that a call came."""

    def call_moved(self, call: LoggedCall) -> None:
        """Ignore that a call began or waits."""

    def call_ended(self, call: LoggedCall, result: Result) -> None:  # noqa: ARG002 - as observers
        """See whether it is one that was to be stopped; on any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            self._loop.call_soon_threadsafe(self._answer)
