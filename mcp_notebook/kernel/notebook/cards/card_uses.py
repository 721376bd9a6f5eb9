"""The lines on a card that its reader may want to run: to remove the tools, for example.

Runs on any thread. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

CLIENT = "claude-code"
"""The client whose line stands for those of all; ``%mcp config`` lists the others."""


@dataclass(frozen=True)
class Use:
    """A line to copy, and what it is for."""

    purpose: str
    """What it does: "Remove it"."""
    line: str
    note: str = ""
    """Where to run it, or what else to know."""


def list_uses(names: Sequence[str], *, is_remote: bool) -> tuple[Use, ...]:
    """Return the lines for these tools.

    Args:
        names: Those of the card's tools that are live.
        is_remote: Whether the notebook is on Binder or a JupyterHub, and its clients elsewhere.
    """
    connect = (
        Use(
            "Connect a client",
            f"%mcp config {CLIENT}",
            "In a cell, for your computer.",
        )
        if is_remote
        else Use("Connect a client", f"mcp-notebook install {CLIENT}", "In a terminal, once.")
    )
    it, one = ("it", "it") if len(names) == 1 else ("them", "one")
    return (
        Use(f"Try {one}", f"%mcp try {names[0]}", "A form, in a cell."),
        connect,
        Use(f"Remove {it}", f"%mcp remove {' '.join(names)}", "Deleting the cell does not."),
    )


def describe_uses(uses: Sequence[Use]) -> str:
    """Return the lines as text."""
    width = max(len(use.purpose) for use in uses)
    return "\n".join(f"{use.purpose:<{width}}  {use.line}  ({use.note})" for use in uses)
