"""Findings of the checks: a sentence, and the next step.

Pure data.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["right", "noted", "wrong"]
"""Whether something works, is worth knowing, or does not work."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    state: State
    text: str
    """The finding, as a sentence."""
    next_step: str | None = None
    """The next step, as a sentence; None if there is none, or if the text contains it."""
    tools: tuple[str, ...] | None = None
    """The tools that were listed; None if none were requested."""


def approve(text: str, tools: tuple[str, ...] | None = None) -> Finding:
    """Return the finding that something works."""
    return Finding(state="right", text=text, tools=tools)


def note(text: str, next_step: str | None = None) -> Finding:
    """Return a finding that the user may want to know."""
    return Finding(state="noted", text=text, next_step=next_step)


def complain(text: str, next_step: str | None = None) -> Finding:
    """Return the finding that something does not work."""
    return Finding(state="wrong", text=text, next_step=next_step)
