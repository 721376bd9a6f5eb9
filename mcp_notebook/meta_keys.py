"""The keys of ``_meta``: ours, those of clients, and the rules for those of authors.

Pure, in every process. The kernel writes our keys into the ``_meta`` of tools and results; the
bridge reads some of them and passes all on to clients.
"""

import re
from typing import Any

PREFIX = "io.github.mcp-notebook/"
"""The prefix of all our keys: a reverse-DNS name, as MCP requires. Authors cannot use it."""

TAGS = f"{PREFIX}tags"
"""Of a tool: the tags that its author gave it, a list of strings."""
PRIORITY = f"{PREFIX}priority"
"""Of a tool: a number. Tools with a higher priority are listed first; the default is 0."""
RELATED = f"{PREFIX}related"
"""Of a tool: the names of related tools, a list of strings."""
CACHE = f"{PREFIX}cache"
"""Of a tool: the number of seconds that its results are cached, or "ephemeral"."""
CONFIRM = f"{PREFIX}confirm"
"""Of a tool: true if a person is asked before each call."""
CACHED = f"{PREFIX}cached"
"""Of a result from the cache: its age, and the time for which the tool's results are cached, in
seconds."""

MAX_RESULT_SIZE = "anthropic/maxResultSizeChars"
"""Of a tool: the number of characters of a result that Claude Code shows its model in full, at most
500,000. This key belongs to that client; authors can set it, too."""
_CLIENT_KEYS = frozenset({MAX_RESULT_SIZE, "anthropic/requiresUserInteraction"})
"""Keys of clients, although their prefix is not a domain."""

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"({_LABEL}(?:\.{_LABEL})+)/(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_RESERVED = frozenset({"mcp", "modelcontextprotocol"})


def describe_key_problem(key: Any) -> str | None:
    """Explain why authors cannot use a key, by the rules for ``_meta`` in MCP's specification.

    Returns:
        The end of a sentence that names the key, or None if they can.
    """
    if isinstance(key, str) and key in _CLIENT_KEYS:
        return None
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    if match is None:
        return (
            "but MCP requires a reversed domain of yours and a name of letters, digits, `-`, `_` "
            "and `.`, for example 'com.example/team'"
        )
    labels = match[1].lower().split(".")
    if labels[1] in _RESERVED:
        return f"but MCP reserves keys with {labels[1]!r} there: use a domain of yours"
    if key.lower().startswith(PREFIX):
        return "but that prefix is reserved for mcp-notebook: use a domain of yours"
    return None
