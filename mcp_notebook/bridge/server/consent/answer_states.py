"""The states that clients return with a person's answer: secret, expiring, valid once.

Runs on the bridge's event loop. At 2026-07-28 a call that needs consent is answered with the
question, and the client repeats the call with the answer and the state of the question. A state
cannot be guessed, and is for its own request only. The oldest open questions are forgotten if there
are too many.
"""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

from mcp_notebook.bridge.server.calls.tool_questions import CONSENT_STATE
from mcp_notebook.errors import UnknownState

MAX_OPEN = 4_096
"""Questions that wait for an answer."""


@dataclass(frozen=True)
class AskedState:
    """What is known of a question."""

    request: str
    """Identifies its request: see `calls.gates.identify_request`."""
    tool: str
    """Identifies the tool in its form when the question was asked."""
    expiry: float
    """When it expires, on the monotonic clock."""

    @property
    def is_expired(self) -> bool:
        """Whether an answer comes too late."""
        return time.monotonic() >= self.expiry


class AnswerStates:
    """Issues states, and redeems each once."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, AskedState] = OrderedDict()
        """The open questions by state, oldest first."""

    def issue(self, request: str, tool: str, lifetime: float) -> str:
        """Return a state for a question.

        Args:
            request: Identifies the request: see `calls.gates.identify_request`.
            tool: Identifies the tool in its present form.
            lifetime: Seconds until the state expires.
        """
        state = CONSENT_STATE + secrets.token_urlsafe(32)
        self._open[state] = AskedState(request, tool, time.monotonic() + lifetime)
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return state

    def redeem(self, state: str, request: str) -> AskedState:
        """Return what is known of a question; its state cannot be used again.

        Raises:
            UnknownState: It is from another bridge, for another request, or used.
        """
        asked = self._open.get(state)
        if asked is None or asked.request != request:
            raise UnknownState
        return self._open.pop(state)
