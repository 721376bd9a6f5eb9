"""Pages of lists, and how a list is divided into them.

Runs on the bridge's event loop; pure. A cursor is a hash of the whole list and a position in it: it
is valid as long as the list stays the same, even after a restart of the bridge, so that no client
ever combines pages of different lists. Cursors are compared and never parsed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from mcp_notebook.lean_json import to_json
from mcp_notebook.protocol.errors import INVALID_PARAMS, ProtocolError

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


def divide(items: Sequence[dict[str, Any]], page_size: int | None) -> Mapping[str | None, Page]:
    """Return the pages of a list, by their cursors; the first page has None.

    Args:
        items: The whole list, in MCP's form.
        page_size: Items on a page; None for all.
    """
    if page_size is None or len(items) <= page_size:
        return {None: Page(tuple(items), None)}
    digest = hashlib.sha256(to_json(items)).hexdigest()[:32]
    starts = range(0, len(items), page_size)
    cursors = [None, *(f"{digest}.{start}" for start in starts[1:]), None]
    return {
        cursors[number]: Page(tuple(items[start : start + page_size]), cursors[number + 1])
        for number, start in enumerate(starts)
    }


def find_page(pages: Mapping[str | None, Page], cursor: str | None) -> Page:
    """Return the page with a cursor.

    Raises:
        ProtocolError: The list does not have the cursor.
    """
    if (page := pages.get(cursor)) is None:
        raise ProtocolError(
            INVALID_PARAMS,
            "Unknown cursor: it is not from this server, or the list has changed since. Request "
            "the list again without a cursor.",
        )
    return page
