"""Calls that wait in their kernel until the client returns with an answer.

Runs on the bridge's event loop. At 2026-07-28 a server cannot send requests to its client. It
answers a call with a question, and the client sends the whole call again with the answer and the
state that came with the question. A tool's function must not run twice because of that, so the call
is parked here, and the state is its key. A key cannot be guessed, works once, and only for the same
call of the same caller. If the client does not return within `ANSWER_LIMIT`, the call is cancelled.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.shares import Shares
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.errors import CallError, UnknownState

ANSWER_LIMIT = 600.0
"""Seconds that a user has to answer; the notebook's main thread may be waiting meanwhile."""
MAX_CALLER_PARKED = 16
"""Calls of one caller that may be parked at a time, so that those of others can be."""
MAX_PARKED = 32
"""Calls that may be parked at a time. A client that never returns costs one each time, and with it
one of the `Settings.max_waiting_calls` of its kernel."""

NO_ANSWER = f"Nobody answered the tool's question within {ANSWER_LIMIT / 60:.0f} minutes."


@dataclass(frozen=True)
class _Parked:
    call: RunningCall
    caller: Caller
    request: str
    expiry: asyncio.TimerHandle


class ParkedCalls:
    """The parked calls of one bridge; belongs to its event loop."""

    def __init__(self) -> None:
        self._parked: dict[str, _Parked] = {}
        self._shares = Shares("open questions", per_caller=MAX_CALLER_PARKED, in_all=MAX_PARKED)

    def __len__(self) -> int:
        return len(self._parked)

    def park(
        self, call: RunningCall, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Park a call, and return the state that retrieves it.

        Args:
            call: The call.
            caller: Whom it belongs to.
            name: The tool's name in the client's request.
            arguments: The arguments in the client's request.

        Raises:
            CallError: Too many calls are parked.
        """
        lack = self._shares.explain_lack(caller)
        if lack is not None:
            raise CallError(f"The question cannot be asked. {lack}")
        state = secrets.token_urlsafe(32)
        expiry = asyncio.get_running_loop().call_later(ANSWER_LIMIT, self._expire, state)
        request = _serialize_request(caller, name, arguments)
        self._parked[state] = _Parked(call, caller, request, expiry)
        self._shares.add(caller)
        return state

    def take(
        self, state: str, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> RunningCall:
        """Return the call with this state, which cannot be used again.

        Raises:
            UnknownState: No call has this state, or it is a different call's or caller's.
        """
        parked = self._parked.get(state)
        if parked is None or parked.request != _serialize_request(caller, name, arguments):
            raise UnknownState
        self._remove(state)
        parked.expiry.cancel()
        return parked.call

    def close(self) -> None:
        """Cancel all parked calls."""
        for state in tuple(self._parked):
            parked = self._remove(state)
            parked.expiry.cancel()
            parked.call.cancel("The bridge was stopped.")

    def _expire(self, state: str) -> None:
        self._remove(state).call.cancel(NO_ANSWER)

    def _remove(self, state: str) -> _Parked:
        parked = self._parked.pop(state)
        self._shares.remove(parked.caller)
        return parked


def _serialize_request(caller: Caller, name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([caller.owns, name, arguments], sort_keys=True)
