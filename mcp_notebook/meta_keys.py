"""The keys of ``_meta``: ours, under one prefix; a client's; which ones are an author's to use.

The kernel writes ours into a tool's or a result's ``_meta``, the bridge reads some and passes all
on to clients; who fills and reads them is said at each. Pure.
"""

import re
from typing import Any

PREFIX = "io.github.mcp-notebook/"
"""Of all keys of ours, as MCP wants it: a reverse-DNS name. Authors may not use it."""

TAGS = f"{PREFIX}tags"
"""Of a tool: its author's words to group tools by, a list of strings (`kernel.tools.metadata`)."""
PRIORITY = f"{PREFIX}priority"
"""Of a tool: a number; `kernels.catalog` lists tools of a higher one first. Absent means 0."""
RELATED = f"{PREFIX}related"
"""Of a tool: names of tools that belong to it, a list of strings (`kernel.tools.metadata`)."""
CACHE = f"{PREFIX}cache"
"""Of a tool: for how many seconds a result is given again, or "ephemeral"."""
CACHED = f"{PREFIX}cached"
"""Of a result that was given before: its age and its tool's time, in seconds."""

MAX_RESULT_SIZE = "anthropic/maxResultSizeChars"
"""Of a tool, not ours but a client's: characters of a result that Claude Code shows its model as
they are (500,000 at most), in place of what it takes by default (`kernel.tools.metadata`). Authors
may
set it themselves."""
_OF_CLIENTS = frozenset({MAX_RESULT_SIZE, "anthropic/requiresUserInteraction"})
"""Keys whose prefix is no domain, and which clients read all the same."""

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"({_LABEL}(?:\.{_LABEL})+)/(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_RESERVED = frozenset({"mcp", "modelcontextprotocol"})


def key_problem(key: Any) -> str | None:
    """Say why a key is not an author's to use, by MCP's rules ("_meta" in its specification).

    Returns:
        The end of a sentence that names the key; None if it is one to use.
    """
    if isinstance(key, str) and key in _OF_CLIENTS:
        return None
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    if match is None:
        return (
            "but MCP wants a domain of yours, reversed, and a name of letters, digits, `-`, `_` "
            "and `.`: 'com.example/team', say"
        )
    labels = match[1].lower().split(".")
    if labels[1] in _RESERVED:
        return f"but MCP keeps keys with {labels[1]!r} there for itself: use a domain of yours"
    if key.lower().startswith(PREFIX):
        return "but that prefix is mcp-notebook's own: use a domain of yours"
    return None
