"""The states that clients return with a person's answer: signed, expiring, valid once.

Runs on the bridge's event loop. At 2026-07-28 a call that needs consent is answered with the
question, and the client repeats the call with the answer and the state of the question. Open
questions are not stored: the state identifies its request, and is signed with a key that only this
bridge has (HMAC-SHA256). Nothing in it is secret: its number, when it expires, and hashes of the
request and of the tool. The numbers of used states are kept, up to a number; then the lowest is
forgotten, and all states with lower numbers expire.
"""

import base64
import binascii
import heapq
import hmac
import json
import secrets
import time
from dataclasses import dataclass

from mcp_notebook.bridge.server.calls.tool_questions import CONSENT_STATE
from mcp_notebook.errors import UnknownState


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
        self._key = secrets.token_bytes(32)
        self._max_used = max_used
        self._last = 0
        self._used: list[int] = []
        """The numbers of used states, as a heap."""
        self._first = 1
        """States with lower numbers have expired."""

    def issue(self, request: str, tool: str, lifetime: float) -> str:
        """Return a state for a question.

        Args:
            request: Identifies the request: see `calls.gates.identify_request`.
            tool: Identifies the tool in its present form.
            lifetime: Seconds until the state expires.
        """
        self._last += 1
        claims = json.dumps([self._last, time.monotonic() + lifetime, request, tool]).encode()
        signed = self._sign(claims) + claims
        return CONSENT_STATE + base64.urlsafe_b64encode(signed).decode()

    def redeem(self, state: str, request: str) -> AskedState:
        """Return the content of a state, which cannot be used again.

        Raises:
            UnknownState: It is from another bridge, for another request, or used.
        """
        try:
            signed = base64.b64decode(state.removeprefix(CONSENT_STATE), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise UnknownState from None
        signature, claims = signed[:32], signed[32:]
        if not hmac.compare_digest(signature, self._sign(claims)):
            raise UnknownState
        number, expiry, its_request, tool = json.loads(claims)
        if its_request != request or number in self._used:
            raise UnknownState
        is_expired = number < self._first or time.monotonic() >= expiry
        heapq.heappush(self._used, number)
        if len(self._used) > self._max_used:
            self._first = max(self._first, heapq.heappop(self._used) + 1)
        return AskedState(tool, is_expired)

    def _sign(self, claims: bytes) -> bytes:
        return hmac.digest(self._key, claims, "sha256")
