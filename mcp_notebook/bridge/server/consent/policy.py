"""Which calls need a person's consent, and the error for a denied call.

Runs on the bridge's event loop, and in the process of ``mcp-notebook call``; pure. `ask_consent`
and `cli.call` ask.
"""

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from mcp_notebook import meta_keys
from mcp_notebook.errors import ConsentDenied
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.wording import format_seconds
from mcp_notebook.wire import messages

Decision: TypeAlias = Literal["once", "session", "deny", "close"]
"""A person's answer: allow this call, allow all calls of the tool for a while, deny, or none."""
_ENDINGS = {
    "deny": "A person was asked and did not allow it. Do not call it again unless the user wants "
    "you to.",
    "close": "A person was asked and closed the question without an answer.",
}


@dataclass(frozen=True, kw_only=True)
class ConsentPolicy:
    """Which calls need a person's consent, how long they wait for it, and how many may wait."""

    confirm_destructive: bool = False
    """Whether all potentially destructive tools need it, not only those with ``confirm``."""
    timeout: float = 600.0
    """Seconds that a person has to answer. No answer counts as a no."""
    tell_every: float = 10.0
    """Seconds between progress notifications; some clients give up after a minute without one."""
    max_open: int = 16
    """Maximum number of open questions of all clients, except those that a repeated call
    answers."""
    max_caller_open: int = 8
    """Maximum number of open questions of one caller, so that other callers can ask theirs."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the policy in the settings."""
        return cls(confirm_destructive=settings.confirm_destructive)

    def applies_to(self, tool: messages.ToolInfo) -> bool:
        """Return whether a person has to agree to each call of a tool.

        Without annotations, a tool may be destructive: this is MCP's default.
        """
        if (tool.meta or {}).get(meta_keys.CONFIRM) is True or tool.revision is not None:
            return True
        hints = tool.annotations or {}
        is_harmless = hints.get("readOnlyHint") is True or hints.get("destructiveHint") is False
        return self.confirm_destructive and not is_harmless

    def make_timeout(self, tool: str) -> ConsentDenied:
        """Return the error for a call whose question was not answered in time."""
        return make_denial(
            tool, f"Nobody answered the question within {format_seconds(self.timeout)}."
        )


ASK_FOR_CONFIRM = ConsentPolicy()
"""Only tools with ``confirm`` need consent."""


def check_decision(tool: str, decision: Decision) -> None:
    """Refuse a call that a person did not allow.

    Raises:
        ConsentDenied: The call must not run.
    """
    if decision in _ENDINGS:
        raise make_denial(tool, _ENDINGS[decision])


def make_denial(tool: str, reason: str) -> ConsentDenied:
    """Return the error for a call that did not run.

    Args:
        tool: The tool's name.
        reason: Why there is no consent, and what to do, as sentences.
    """
    return ConsentDenied(
        f"The tool {tool!r} runs only with a person's consent, so this call did not run. {reason}"
    )
