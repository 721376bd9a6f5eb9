"""Findings of the checks, and the table of what can be wrong: the cause, and the next step.

Pure data.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mcp_notebook.text.wording import count

State: TypeAlias = Literal["right", "noted", "wrong"]
"""Whether something works, is worth knowing, or does not work."""
_MOST_NAMES = 8
"""Maximum number of tools named on a line."""
CAUSES = {
    "no entry": (
        "{client} is not connected: {file} has no entry for mcp-notebook.",
        "Run {repair}.",
    ),
    "off": (
        "It is disabled in {client}.",
        "Enable it in the client, or in its settings.",
    ),
    "empty": (
        "The entry has neither a command nor an address.",
        "Run {repair}.",
    ),
    "failed": (
        "Its command `{command}`, started in {folder}, lists no tools: {output}",
        "Fix that, or run {repair} to start this environment's mcp-notebook by its full path.",
    ),
    "late": (
        "It did not list its tools within {limit:g} s, the timeout of {client}. {output}",
        "Run `{command}` to see what it waits for. For notebooks, raise the timeout{timeout}.",
    ),
    "other version": (
        "It starts mcp-notebook {theirs}, but this is {ours}.",
        "Run {repair} to start this one, or upgrade the older one.",
    ),
    "other server": (
        "It is the server {theirs}, not mcp-notebook.",
        "Run {repair} to replace it, with --url URL/mcp-notebook for the Jupyter server at URL.",
    ),
    "other home": (
        "It has no tools. It looks for open notebooks in {theirs}, but yours are in {ours}.",
        "With MCP_NOTEBOOK_HOME={ours} set, run {repair}; or unset it where Jupyter is started.",
    ),
    "nobody": (
        "Nothing answers at {url}.",
        "Start a bridge there (`%mcp serve` or `mcp-notebook serve`), or run {repair}.",
    ),
    "foreign": (
        "{url} is in use by a program of another user, which gets the token that {client} sends.",
        "Serve on another port (`mcp-notebook serve --port PORT`), and run {repair}.",
    ),
    "not encrypted": (
        "{url} is on another machine and not encrypted: anybody on the way can read the token.",
        "Use an address with https://, or `mcp-notebook connect`.",
    ),
    "no variable": (
        "{client} reads the token from the variable {variable}, which is not set here.",
        "Set it to the token in {token} where {client} is started.",
    ),
    "refused": (
        "{url} does not accept the token that {client} sends.",
        "The token of your own bridge is in {token}.",
    ),
    "old bridge": (
        "The background bridge at {url} is mcp-notebook {theirs}, but this is {ours}.",
        "`%mcp serve` in a notebook of this environment replaces an older bridge.",
    ),
    "no extension": (
        "The Jupyter server at {url} does not serve tools at /mcp-notebook.",
        "Install mcp-notebook there, or run `jupyter server extension enable mcp_notebook`.",
    ),
    "silent bridge": (
        "The background bridge does not answer at {url}.",
        "Restart it in a notebook: `%mcp serve --stop`, then `%mcp serve`.",
    ),
}
"""What can be wrong: the cause, and the next step."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    state: State
    text: str
    """The finding, as a sentence."""
    next_step: str | None = None
    """The next step, as a sentence; None if there is none, or if the text contains it."""


def explain(cause: str, **names: object) -> Finding:
    """Return a finding of the table.

    Args:
        cause: Its name.
        names: What stands in its sentences.
    """
    text, next_step = (template.format(**names).strip() for template in CAUSES[cause])
    return complain(text, next_step)


def approve(text: str) -> Finding:
    """Return the finding that something works."""
    return Finding(state="right", text=text)


def note(text: str, next_step: str | None = None) -> Finding:
    """Return a finding that the user may want to know."""
    return Finding(state="noted", text=text, next_step=next_step)


def complain(text: str, next_step: str | None = None) -> Finding:
    """Return the finding that something does not work."""
    return Finding(state="wrong", text=text, next_step=next_step)


def describe_tools(tools: list[str]) -> str:
    """Return the number of tools, and the names of the first few."""
    more = len(tools) - _MOST_NAMES
    names = [*tools[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])]
    return f"{count(len(tools), 'tool')} ({', '.join(names)})"
