"""The states that clients return with a person's answer: encrypted, expiring, valid once.

Runs on the bridge's event loop. At 2026-07-28 a call that needs consent is answered with the
question, and the client repeats the call with the answer and the state of the question. Open
questions are not stored: the state identifies its request, and is encrypted with a key that only
this bridge has. The numbers of used states are kept, up to a number; then the lowest is
forgotten, and all states with lower numbers expire.
"""

import heapq
import json
import secrets
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mcp_notebook.bridge.server.calls.tool_questions import CONSENT_STATE
from mcp_notebook.errors import UnknownState

if TYPE_CHECKING:
    from mcp.server.request_state import AESGCMRequestStateCodec


@dataclass(frozen=True)
class AskedState:
    """The content of a question's state."""

    tool: str
    """Identifies the tool in its form when the question was asked."""
    is_expired: bool
    """Whether the answer comes too late."""


class AnswerStates:
    """Issues states, and redeems each once.

    Args:
        max_used: Maximum number of used states whose numbers are kept.
    """

    def __init__(self, *, max_used: int = 4_096) -> None:
        self._max_used = max_used
        self._last = 0
        self._used: list[int] = []
        """The numbers of used states, as a heap."""
        self._first = 1
        """States with lower numbers have expired."""

    @cached_property
    def _codec(self) -> "AESGCMRequestStateCodec":
        # Loaded on use: takes 6 MB with its library, and most bridges never ask.
        from mcp.server.request_state import AESGCMRequestStateCodec  # noqa: PLC0415

        return AESGCMRequestStateCodec([secrets.token_bytes(32)])

    def issue(self, request: str, tool: str, lifetime: float) -> str:
        """Return a state for a question.

        Args:
            request: Identifies the request: see `calls.gates.identify_request`.
            tool: Identifies the tool in its present form.
            lifetime: Seconds until the state expires.
        """
        self._last += 1
        claims = [self._last, time.monotonic() + lifetime, request, tool]
        return CONSENT_STATE + self._codec.seal(json.dumps(claims).encode())

    def redeem(self, state: str, request: str) -> AskedState:
        """Return the content of a state, which cannot be used again.

        Raises:
            UnknownState: It is from another bridge, for another request, or used.
        """
        from mcp.server.request_state import InvalidRequestState  # noqa: PLC0415 - as the codec

        try:
            sealed = self._codec.unseal(state.removeprefix(CONSENT_STATE))
        except InvalidRequestState:
            raise UnknownState from None
        number, expiry, its_request, tool = json.loads(sealed)
        if its_request != request or number in self._used:
            raise UnknownState
        is_expired = number < self._first or time.monotonic() >= expiry
        heapq.heappush(self._used, number)
        if len(self._used) > self._max_used:
            self._first = max(self._first, heapq.heappop(self._used) + 1)
        return AskedState(tool, is_expired)
