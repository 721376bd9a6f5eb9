"""The rules for the ``_meta`` of a result that an author made by hand.

Runs in the user's kernel, on the thread of the call. Pure.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.problems import shown

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(
    rf"({_LABEL}(?:\.{_LABEL})+)/(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)
_RESERVED = frozenset({"mcp", "modelcontextprotocol"})


def check_meta(meta: Any) -> None:
    """Refuse what may not be a result's ``_meta``.

    Raises:
        InvalidResult: It is no mapping, or a key is not the author's to use.
    """
    if meta is not None and not isinstance(meta, Mapping):
        raise InvalidResult(
            "The `meta` of the `Result` that the tool returned is a dict, like "
            f"{{'com.example/source': 'sales'}}, not {shown(meta)}."
        )
    for key in meta or ():
        match = _META_KEY.fullmatch(key) if isinstance(key, str) else None
        if match is None:
            why = "MCP wants a domain of yours, reversed, and a name: 'com.example/source', say"
        elif match[1].lower().split(".")[1] in _RESERVED:
            why = "MCP keeps keys of that domain for itself: use a domain of yours"
        else:
            continue
        raise InvalidResult(
            "The `meta` of the `Result` that the tool returned has the key "
            f"{shown(key)}, but {why}."
        )
