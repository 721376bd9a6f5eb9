"""The keys of ``_meta``: ours, clients', and the rules for authors' keys.

Pure, in every process. The kernel writes our keys into the ``_meta`` of tools and results; the
bridge reads some of them and sends all to clients.
"""

import re
from typing import Any

PREFIX = "io.github.mcp-notebook/"
"""The prefix of our keys: a reverse-DNS name, as MCP recommends. Authors cannot use it."""

TAGS = f"{PREFIX}tags"
"""Of a tool: the tags that its author gave it, a list of strings."""
PRIORITY = f"{PREFIX}priority"
"""Of a tool: a number. Tools with a higher priority are listed first; the default is 0."""
RELATED = f"{PREFIX}related"
"""Of a tool: the names of related tools, a list of strings."""
CACHE = f"{PREFIX}cache"
"""Of a tool: the number of seconds for which clients may reuse its results, or "ephemeral"."""
CONFIRM = f"{PREFIX}confirm"
"""Of a tool: true if a person is asked before each call."""
DIGEST = f"{PREFIX}digest"
"""Of a tool that a bridge with ``--locked`` offers: the hash of its declaration, as in the lock."""
CODE = f"{PREFIX}code"
"""Of a notebook that has to run: a hash of its code, so that a person's consent is for no other."""

VARIABLE = f"{PREFIX}variable"
"""Of a variable as a resource: its ``type``, and ``shape`` and ``bytes`` if it has them."""

CHANGES = f"{PREFIX}changes"
"""Of a result of a trial: what the call changed in its copy of the kernel, as pairs of kind and
name; absent if that is not known."""

VIEW = f"{PREFIX}view"
"""Of a result, for clients that show live views: the URI that its view reads, and its files."""

DATA = f"{PREFIX}data"
"""Of a result, for the pages of a notebook's author: what the tool returned, as JSON."""

SHORTENED = f"{PREFIX}shortened"
"""Of a result with shortened data for pages: which part of each list it has."""

MAX_RESULT_SIZE = "anthropic/maxResultSizeChars"
"""Of a tool: the number of characters of a result that Claude Code shows its model in full, at most
500,000. A key of that client, which authors may also set."""

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:({_LABEL}(?:\.{_LABEL})*)/)?(?:{_NAME})?")
_RESERVED = frozenset({"mcp", "modelcontextprotocol"})
_RESERVED_NAMES = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
_VIEW_KEYS = frozenset({"ui", "ui/resourceUri"})
"""Keys of MCP Apps: the page that a client shows beside a tool's results."""


def describe_key_problem(key: Any) -> str | None:
    """Explain why authors cannot use a key, by the rules for ``_meta`` in MCP's specification.

    Returns:
        The end of a sentence that names the key, or None if the key is valid.
    """
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    if match is None:
        return (
            "but MCP allows only a name of letters, digits, `-`, `_` and `.`, such as 'team', that "
            "can follow a prefix, such as 'com.example/team'"
        )
    if key in _RESERVED_NAMES:
        return f"but MCP reserves {key!r}: use another name"
    if key in _VIEW_KEYS:
        return (
            "but mcp-notebook sets it, and only for clients that show live views: use the tool's "
            "option `ui` (`ui='view.html'`)"
        )
    labels = (match[1] or "").lower().split(".")
    # Versions after 2025-06-18 reserve only the second label, even if it is the last.
    reserved = [label for label in (*labels[:-1], *labels[1:2]) if label in _RESERVED]
    if reserved:
        return f"but MCP reserves keys with {reserved[0]!r} there: use a domain of yours"
    if key.lower().startswith(PREFIX):
        return "but that prefix is reserved for mcp-notebook: use a domain of yours"
    return None
