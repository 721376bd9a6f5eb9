"""The state of a tool (live, gone, renamed or replaced), and why clients do not see it.

Runs on any thread. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.missing_tools import (
    META_TOOLS,
    READ_RESOURCE,
    RUN_AGAIN,
    DroppedTool,
    explain_dropped,
    explain_reserved_name,
    format_time,
)
from mcp_notebook.wire import messages


@dataclass(frozen=True)
class ToolState:
    """The state of a tool."""

    word: str
    """One word for a badge: "live"."""
    explanation: str = ""
    """The reason and the next step, as sentences; may be empty."""
    is_live: bool = False
    """Whether clients can call the tool that the card shows."""


LIVE = ToolState("live", is_live=True)


def describe_live_tool(listed: messages.ListedName | None) -> ToolState:
    """Return the state of a tool that clients can call.

    Args:
        listed: The name that they see, if it differs from the tool's own.
    """
    if listed is None:
        return LIVE
    return ToolState(
        "live",
        f"Clients see it as `{listed.name}`. {listed.reason} {listed.next_step}",
        is_live=True,
    )


def describe_moved_tool(name: str) -> ToolState:
    """Return the state of a tool that another cell has declared again."""
    return ToolState("replaced", f"Another cell has declared `{name}` again, and shows its card.")


def describe_dropped_tool(dropped: DroppedTool, new_name: str | None) -> ToolState:
    """Return the state of a tool that was dropped.

    Args:
        dropped: When and why it was dropped.
        new_name: The name of the tool that replaces it, if there is one.
    """
    if new_name is not None:
        when = format_time(dropped.at)
        return ToolState("renamed", f"Since {when}, its name is `{new_name}`.")
    reason = f"{dropped.reason} That was at {format_time(dropped.at)}."
    return ToolState("gone", f"{reason} {dropped.next_step}")


def describe_removed_tool(at: float) -> ToolState:
    """Return the state of a tool that its notebook removed without a recorded reason.

    Args:
        at: When, in seconds since the epoch.
    """
    return ToolState("gone", f"The notebook removed it at {format_time(at)}. {RUN_AGAIN}")


def describe_unloaded_tool(at: float) -> ToolState:
    """Return the state of a tool whose notebook has unloaded the extension.

    Args:
        at: When, in seconds since the epoch.
    """
    return ToolState(
        "gone",
        f"The notebook unloaded mcp_notebook at {format_time(at)}. To offer the tool again, run "
        "`%load_ext mcp_notebook`, and then this cell.",
    )


def explain_missing_tools(registry: ToolRegistry, refusal: str | None) -> Iterator[str]:
    """Yield a sentence or two for each tool that clients do not see.

    Args:
        registry: The notebook's tools.
        refusal: Why the last bridge was refused, if it was.
    """
    missing = [
        explain_dropped("", name, dropped, registry.find_new_name(dropped))
        for name, dropped in registry.dropped.items()
    ]
    missing += [
        explain_reserved_name("", name, f"<notebook>_{name}")
        for name in (*META_TOOLS, READ_RESOURCE)
        if registry.get(name) is not None
    ]
    yield from (f"{tool.tool}: {tool.reason} {tool.next_step}" for tool in missing)
    if refusal is not None:
        yield f"all tools, for a client whose bridge was refused: {refusal}"
