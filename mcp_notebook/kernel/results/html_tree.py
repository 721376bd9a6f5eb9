"""Parses HTML to a tree that can be walked in bounded time and without a deep recursion.

Runs in the user's kernel, on the thread of the call. Imported late, since it loads BeautifulSoup.
The parser of BeautifulSoup takes quadratic time for elements that nothing ends, and does not end
them itself as browsers do. What is taken out of the tree and how it reads is for `html`.
"""

import re
from collections import Counter
from typing import Any

from bs4 import BeautifulSoup, Tag

MAX_DEPTH = 60
"""Levels of nested elements, well below Python's recursion limit; deeper ones become text."""

_CELLS = frozenset({"td", "th"})
_ENDED_BY_NEXT = {
    "td": _CELLS,
    "th": _CELLS,
    "tr": _CELLS | {"tr"},
    "li": {"li"},
    "dd": {"dd", "dt"},
    "dt": {"dd", "dt"},
    "option": {"option"},
    "p": {"p"},
}
_LONG_GAP = re.compile(r"([ \t\r\n]{200})[ \t\r\n]++")
"""White space for which markdownify takes long: its patterns try each beginning of a gap."""


class HtmlTree(BeautifulSoup):
    """A document of which at most `MAX_DEPTH` elements are within each other.

    The methods are those that BeautifulSoup's parser calls.
    """

    def __init__(self, markup: str) -> None:
        self._dropped: list[str] = []
        """Names of the open elements that are too deep, outermost first."""
        self._dropped_counts: Counter[str] = Counter()
        super().__init__(markup, "html.parser")

    def handle_starttag(self, name: str, *args: Any, **options: Any) -> Tag | None:
        """Add an element; None if it is complete or too deep."""
        is_empty = bool(self.builder.can_be_empty_element(name))
        if self._dropped or len(self.tagStack) > MAX_DEPTH:
            if not is_empty:
                self._drop(name)
                return None
        else:
            self._end_items(name)
        tag = super().handle_starttag(name, *args, **options)
        if not is_empty:
            return tag
        # The parser would keep a list of these, and look through it at each end of an element.
        super().handle_endtag(name)
        return None

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        """End the innermost element of this name, and all that is within it."""
        if self._dropped_counts[name]:
            while (last := self._dropped.pop()) != name:
                self._dropped_counts[last] -= 1
            self._dropped_counts[name] -= 1
            self.handle_data(" ")
        else:
            if self.open_tag_counter.get(name):
                self._dropped.clear()
                self._dropped_counts.clear()
            super().handle_endtag(name, nsprefix)

    def endData(self, *args: Any) -> None:  # noqa: N802 - its name in BeautifulSoup
        """Add the text that was read so far."""
        if self.current_data:
            self.current_data = [_LONG_GAP.sub(r"\1", "".join(self.current_data))]
        super().endData(*args)

    def _end_items(self, name: str) -> None:
        """End the items or cells that the next one ends, as browsers do."""
        while self.currentTag is not None and self.currentTag.name in _ENDED_BY_NEXT.get(name, ()):
            super().handle_endtag(self.currentTag.name)

    def _drop(self, name: str) -> None:
        self.handle_data(" ")
        self._dropped.append(name)
        self._dropped_counts[name] += 1
