"""What an examination finds: one sentence each, and what to do about it.

Pure data.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["right", "noted", "wrong"]
"""Whether something works, need not, or should and does not."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    state: State
    text: str
    """What there is, as a sentence."""
    next_step: str | None = None
    """What the user can do, as a sentence; None if nothing, or if the text says it already."""
    tools: tuple[str, ...] | None = None
    """The tools that were listed, if they were asked for."""


def approve(text: str, tools: tuple[str, ...] | None = None) -> Finding:
    """Return that something is as it should be."""
    return Finding(state="right", text=text, tools=tools)


def note(text: str, next_step: str | None = None) -> Finding:
    """Return something that the user may want to know."""
    return Finding(state="noted", text=text, next_step=next_step)


def complain(text: str, next_step: str | None = None) -> Finding:
    """Return that something does not work."""
    return Finding(state="wrong", text=text, next_step=next_step)
