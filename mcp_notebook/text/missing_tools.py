"""Why a tool is missing: every reason why clients do not see a tool under its own name.

Pure, in every process. One function per reason, each with the cause and the next step. The kernel
knows what became of a declaration; a bridge knows the rest. ``mcp-notebook list`` shows all reasons
below its table, and ``%mcp status`` those that the kernel knows. The bridge explains them to a
client that calls a tool that recently went missing.

===============================  ==================================================================
the tool was dropped             its variable was deleted or rebound, or cannot become a tool
the tool was not declared        although its notebook did last time, or its code seems to
the tool was switched off        in the side panel, by the notebook's user
the tool is not as it was locked  and its bridge offers only what is locked
the tool was renamed             by its author, or with its notebook
another notebook has the name    both tools are listed as ``<notebook>_<tool>``
clients know another tool by it  which was listed as ``<notebook>_<tool>``; now this one is
a bridge reserves the name       for a tool of its own; the tool is listed as ``<notebook>_<tool>``
clients do not accept the name   it is listed under a similar one
MCP does not accept the tool     in some or all versions of the protocol
its kernel cannot be started     several starts in a row have failed
its kernel has left              it was restarted or shut down, or unloaded mcp_notebook
its kernel is dead               it crashed or was killed
its file is left out             of those that a folder's bridge serves
its file is gone                 from the folder that is served
its link was lost                although its kernel is alive; it is being reopened
its kernel cannot be linked      it does not answer, is too old or too new, or refuses the bridge
its kernel is elsewhere          on another machine that shares the home folder
another bridge runs it           a notebook without a frontend belongs to the bridge that runs it
===============================  ==================================================================
"""

import time
from collections.abc import Sequence

from msgspec import Struct

META_TOOLS = (
    "list_notebook_tools",
    "describe_notebook_tool",
    "call_notebook_tool",
    "notebook_result",
)
"""The names that a bridge with meta-tools reserves..."""
SEARCH_TOOLS = "search_notebook_tools"
"""...together with this one, which takes the place of the first with ``--meta-tools=only``."""
RUN_NOTEBOOK = "run_notebook"
"""The name that a bridge reserves that serves a folder, for its tool that runs a notebook."""
READ_RESOURCE = "read_notebook_resource"
"""The name that every bridge reserves for its tool that reads originals of shortened results."""
RESERVED_NAMES = (*META_TOOLS, SEARCH_TOOLS, RUN_NOTEBOOK, READ_RESOURCE)
"""All names that some bridge reserves."""
DEFINE_AGAIN = "If it is still needed, define it again and run its cell."
RUN_AGAIN = "Run its cell again, and it returns."
SWITCHED_OFF = "Its user has switched it off in the side panel."
SWITCH_ON = "Ask the user to switch it on there."
_RESTART = "Restart the notebook's kernel and run its cells again."
_WAIT_OR_RELOAD = (
    "It may be busy: try again when its cell has ended. If that does not help, run `%reload_ext "
    "mcp_notebook` in the notebook, which keeps its variables and its tools."
)


class MissingTool(Struct, frozen=True):
    """A tool that clients do not see under its own name, or all tools of a notebook."""

    notebook: str
    tool: str | None
    """Its own name; None for all tools of the notebook."""
    reason: str
    """The cause, as a sentence."""
    next_step: str
    """What the user can do, as a sentence."""
    listed_as: str | None = None
    """Its name in the list; None if it is not listed."""

    def __str__(self) -> str:
        name = self.notebook if self.tool is None else f"{self.notebook}: {self.tool}"
        where = "not listed" if self.listed_as is None else f"listed as {self.listed_as}"
        return f"{name} ({where}): {self.reason} {self.next_step}"


# -- what became of its declaration ----------------------------------------------------------------

REFUSED = "mcp_notebook.refused"
"""The source of payloads in the reply to a cell, whose ``text`` has sentences of
`write_refusal`."""


def write_refusal(name: str, kind: str, reason: str) -> str:
    """Return why a function of a cell that declares others has become no tool.

    Args:
        name: The function's.
        kind: What it should become.
        reason: A sentence, which may begin as a clause.
    """
    return f"`{name}` is not offered as a {kind}: {' '.join(reason.split())}"


class DroppedTool(Struct, frozen=True):
    """A tool that a kernel no longer has, and why."""

    reason: str
    """What happened, as a sentence."""
    at: float
    """When the tool went, in seconds since the epoch; 0: it is there, and kept from clients."""
    next_step: str = DEFINE_AGAIN
    """What the user can do, as a sentence."""
    new_name: str | None = None
    """The new name, if the tool was renamed."""


def explain_dropped(
    notebook: str, tool: str, dropped: DroppedTool, listed_as: str | None = None
) -> MissingTool:
    """Explain what became of a tool, as far as its kernel knows.

    Args:
        notebook: The notebook's name.
        tool: The tool's name.
        dropped: What the kernel knows.
        listed_as: The listed name of its replacement, if there is one.
    """
    if listed_as is not None:
        return explain_renamed(notebook, tool, listed_as, dropped.at)
    when = f" That was at {format_time(dropped.at)}." if dropped.at else ""
    return MissingTool(notebook, tool, f"{dropped.reason}{when}", dropped.next_step)


def explain_undeclared(notebook: str, tool: str, at: float) -> MissingTool:
    """Explain that a notebook's cells had run at this time, and had not declared a listed tool."""
    reason = f"At {format_time(at)} its cells had run, and none of them declared it."
    return MissingTool(notebook, tool, reason, "List the tools again.")


def explain_renamed(notebook: str, tool: str, listed_as: str, at: float) -> MissingTool:
    """Explain that a tool has had another name since this time."""
    reason = f"It was renamed at {format_time(at)}."
    verb = "Read" if "://" in listed_as else "Call"
    return MissingTool(notebook, tool, reason, f"{verb} {listed_as!r} instead.", listed_as)


def describe_switched_off(tool: str, kind: str = "tool") -> str:
    """Return the error for a call whose tool (or prompt, or resource) was switched off."""
    return f"The {kind} {tool!r} was not called. {SWITCHED_OFF} {SWITCH_ON}"


# -- its name --------------------------------------------------------------------------------------


def explain_shared_name(notebook: str, tool: str, listed_as: str) -> MissingTool:
    """Explain that tools of several notebooks have the same name."""
    reason = f"Another notebook also has a tool {tool!r}."
    step = "Rename one of them with `%%mcp_tool --name NAME`, or close the other notebook."
    return MissingTool(notebook, tool, reason, step, listed_as)


def explain_shared_uri(notebook: str, resource: str, uri: str) -> MissingTool:
    """Explain that resources of several notebooks have the same URI."""
    reason = "Another notebook also has a resource or skill with this URI."
    step = "Change the URI or the skill's name in one of them, or close the other notebook."
    return MissingTool(notebook, resource, reason, step, uri)


def explain_taken_name(notebook: str, tool: str, listed_as: str) -> MissingTool:
    """Explain that clients know another tool by this name, which includes its notebook's name."""
    reason = f"Clients know another tool, of another notebook, as {tool!r}."
    step = "Rename this one with `%%mcp_tool --name NAME`."
    return MissingTool(notebook, tool, reason, step, listed_as)


def explain_reserved_name(notebook: str, tool: str, listed_as: str) -> MissingTool:
    """Explain that the bridge reserves the name."""
    if tool in (READ_RESOURCE, RUN_NOTEBOOK):
        bridge = "The bridge" if tool == READ_RESOURCE else "A bridge that serves a folder"
        reason = f"{bridge} has its own tool with this name."
        step = "Rename the tool with `%%mcp_tool --name NAME`."
        return MissingTool(notebook, tool, reason, step, listed_as)
    reason = "A bridge that runs with --meta-tools reserves this name for its own tool."
    step = "Rename the tool with `%%mcp_tool --name NAME`, or run the bridge without --meta-tools."
    return MissingTool(notebook, tool, reason, step, listed_as)


def explain_invalid_name(notebook: str, tool: str, listed_as: str) -> MissingTool:
    """Explain that clients do not accept the name, or that it is too long."""
    reason = "Clients accept tool names of at most 64 characters: A-Z a-z 0-9 _ -."
    return MissingTool(
        notebook, tool, reason, "Rename the tool with `%%mcp_tool --name NAME`.", listed_as
    )


# -- MCP -------------------------------------------------------------------------------------------


def explain_rejection(
    notebook: str, tool: str, problem: str, versions: Sequence[str] = ()
) -> MissingTool:
    """Explain that MCP does not accept a tool.

    Args:
        notebook: The notebook's name.
        tool: The tool's name.
        problem: What is wrong with it.
        versions: The versions of MCP that do not accept it; empty for all.
    """
    who = f"MCP {', '.join(versions)} does" if versions else "MCP does"
    step = "Change the tool's declaration, and run its cell again."
    return MissingTool(notebook, tool, f"{who} not accept it: {problem}.", step)


# -- its kernel ------------------------------------------------------------------------------------


def explain_departed_kernel(notebook: str, reason: str, at: float) -> MissingTool:
    """Explain that a kernel has left.

    Args:
        notebook: The notebook's name.
        reason: Why it left, for example "The kernel was restarted."
        at: When, in seconds since the epoch.
    """
    when = f"{reason.rstrip('.')} at {format_time(at)}."
    step = "Its tools return when the notebook is open and its cells have run again."
    return MissingTool(notebook, None, when, step)


def explain_dead_kernel(notebook: str, at: float | None = None) -> MissingTool:
    """Explain that a kernel's process ended unexpectedly, at this time if it is known."""
    when = "" if at is None else f" at {format_time(at)}"
    return MissingTool(notebook, None, f"Its kernel crashed or was killed{when}.", _RESTART)


def explain_left_out(path: str, reason: str) -> MissingTool:
    """Explain that a file or folder within a served folder is left out.

    Args:
        path: The file or folder.
        reason: Why, as the end of a sentence.
    """
    step = "It is looked at again when it changes."
    return MissingTool(path, None, f"{reason[0].upper()}{reason[1:]}.", step)


def explain_deleted_notebook(notebook: str, at: float) -> MissingTool:
    """Explain that a notebook's file is no longer in the folder that is served."""
    reason = f"Its file was moved or deleted, or declares nothing any more, at {format_time(at)}."
    step = "Its tools return when the file is in the folder again."
    return MissingTool(notebook, None, reason, step)


def explain_lost_link(notebook: str, at: float) -> MissingTool:
    """Explain that the link to a live kernel was lost at this time."""
    reason = f"The link to its kernel was lost at {format_time(at)}."
    return MissingTool(notebook, None, reason, "It is being reopened; try again in a moment.")


def explain_failed_link(notebook: str, problem: str, *, is_mismatch: bool) -> MissingTool:
    """Explain that a live kernel cannot be linked.

    Args:
        notebook: The notebook's name.
        problem: The message of the error, as a sentence.
        is_mismatch: Whether the protocol versions differ; the message then names the next step.
    """
    step = "Other notebooks are not affected." if is_mismatch else _WAIT_OR_RELOAD
    return MissingTool(notebook, None, problem, step)


def explain_other_machine(notebook: str, host: str) -> MissingTool:
    """Explain that a kernel runs on another machine."""
    reason = f"Its kernel runs on another machine, {host!r}, which shares this home folder."
    return MissingTool(notebook, None, reason, f"Run mcp-notebook on {host!r}.")


def explain_other_bridge(notebook: str) -> MissingTool:
    """Explain that a notebook without a frontend belongs to the bridge that runs it."""
    reason = "Another mcp-notebook process runs this notebook, and only that process serves it."
    step = "Connect the client to that process, or open the notebook in Jupyter."
    return MissingTool(notebook, None, reason, step)


def format_time(at: float) -> str:
    """Return a recent time in this machine's time zone: "14:02"."""
    return time.strftime("%H:%M", time.localtime(at))
