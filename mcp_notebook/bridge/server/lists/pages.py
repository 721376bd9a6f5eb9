"""Pages of lists, and how a list that is made anew for each request is divided into them.

Runs on the bridge's event loop; pure. A cursor is a hash of the whole list and a position in it: it
is valid as long as the list stays the same, so that no client ever combines pages of different
lists. Cursors are compared and never parsed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pydantic_core import to_json

from mcp_notebook.bridge.server.protocol.protocol_error import INVALID_PARAMS, ProtocolError

LIST_METHODS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
"""The methods that request a page of a list."""


@dataclass(frozen=True)
class Page:
    """A page of a list."""

    items: tuple[dict[str, Any], ...]
    """The items in MCP's form; shared by all requests, so never changed."""
    next_cursor: str | None
    """Identifies the next page; None on the last one."""

    @cached_property
    def text(self) -> bytes:
        """The items as JSON."""
        return to_json(self.items)


def divide(
    items: Sequence[dict[str, Any]], page_size: int, cursor: str | None
) -> tuple[Sequence[dict[str, Any]], str | None]:
    """Return a page of a list, and the cursor of the next one; None after the last page.

    Args:
        items: The whole list, in MCP's form.
        page_size: Items on a page.
        cursor: From the previous page; None for the first page.

    Raises:
        ProtocolError: This list does not have the cursor.
    """
    if cursor is None and len(items) <= page_size:
        return items, None
    digest = hashlib.sha256(to_json(items)).hexdigest()[:32]
    starts = {f"{digest}.{start}": start for start in range(page_size, len(items), page_size)}
    start = 0 if cursor is None else starts.get(cursor)
    if start is None:
        raise ProtocolError(
            INVALID_PARAMS,
            "Unknown cursor: it is not from this server, or the list has changed since. Request "
            "the list again without a cursor.",
        )
    end = start + page_size
    return items[start:end], f"{digest}.{end}" if end < len(items) else None
