"""Calls that wait in their kernel until their client comes back with an answer.

Runs in the bridge, on its event loop. At 2026-07-28 a server cannot ask its client: it answers a
call with the question, and the client sends the whole call again, with the answer and with the
state that came with the question. A tool's function must not run twice for that: its call is parked
here, and the state is the key to it. The key cannot be guessed, opens once, and fits the same call
only. A client need not come back: then the call is cancelled after `ANSWER_LIMIT`.

What a question looks like to MCP is `bridge.server.elicitation`'s business.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.errors import CallError, UnknownState

ANSWER_LIMIT = 600.0
"""Seconds that a user has for an answer; the notebook's main thread may be waiting for it."""
MAX_PARKED = 32
"""Calls that may be parked at a time: a client that never comes back costs one each time, and takes
one of the `Settings.max_waiting_calls` of its kernel."""

NOBODY_ANSWERED = f"Nobody answered the tool's question within {ANSWER_LIMIT / 60:.0f} minutes."


@dataclass(frozen=True)
class _Parked:
    call: RunningCall
    request: str
    expiry: asyncio.TimerHandle


class ParkedCalls:
    """The parked calls of one bridge; belongs to its event loop."""

    def __init__(self) -> None:
        self._parked: dict[str, _Parked] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, call: RunningCall, name: str, arguments: Mapping[str, Any]) -> str:
        """Leave a call here; returns the state that gets it back.

        Args:
            call: The call.
            name: Of the tool, as the client called it.
            arguments: As the client gave them.

        Raises:
            CallError: There are too many.
        """
        if len(self._parked) >= MAX_PARKED:
            raise CallError(
                f"The question cannot be asked: {MAX_PARKED} calls wait for answers already. "
                "Answer some of them first, or try again later."
            )
        state = secrets.token_urlsafe(32)
        expiry = asyncio.get_running_loop().call_later(ANSWER_LIMIT, self._expire, state)
        self._parked[state] = _Parked(call, _identity(name, arguments), expiry)
        return state

    def take(self, state: str, name: str, arguments: Mapping[str, Any]) -> RunningCall:
        """Return the call that was parked for this state, once.

        Raises:
            UnknownState: There is none, or it is another call's.
        """
        parked = self._parked.get(state)
        if parked is None or parked.request != _identity(name, arguments):
            raise UnknownState
        del self._parked[state]
        parked.expiry.cancel()
        return parked.call

    def close(self) -> None:
        """Cancel all that are here."""
        for parked in self._parked.values():
            parked.expiry.cancel()
            parked.call.cancel("The bridge ended.")
        self._parked.clear()

    def _expire(self, state: str) -> None:
        self._parked.pop(state).call.cancel(NOBODY_ANSWERED)


def _identity(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([name, arguments], sort_keys=True)
