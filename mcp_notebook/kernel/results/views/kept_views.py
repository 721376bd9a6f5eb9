"""Keeps what a result's live view shows, and tells the view where to read it.

Runs in the user's kernel, on the thread of the call; one for each result of a client that shows
views. A table or plot that the result shows in part is kept as one original, for its files and for
its view.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mcp_notebook import meta_keys
from mcp_notebook.content import ResourceLink, Result
from mcp_notebook.kernel.results.blocks.originals import Original, OriginalSink
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.tables.frame import Frame
from mcp_notebook.kernel.results.tables.table_text import (
    describe_table,
    describe_table_in_use,
    find_frame,
)
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.wire import resource_uris


class KeptViews:
    """Notes what a result keeps.

    Args:
        keep: Keeps an original.
    """

    def __init__(self, keep: OriginalSink) -> None:
        self._keep = keep
        self._shown: tuple[Original, tuple[ResourceLink, ...]] | None = None
        """The first original that a view can show, with its links."""
        self._whole: Frame | None = None
        """The first table that the result shows whole."""

    def keep(self, original: Original) -> tuple[ResourceLink, ...]:
        """Keep an original, and return its links."""
        links = self._keep(original)
        if original.kind and links and self._shown is None:
            self._shown = original, links
        return links

    def note_table(self, frame: Frame) -> None:
        """Note a table that the result shows whole."""
        if self._whole is None:
            self._whole = frame

    def add_to(self, result: Result, value: Any, pieces: Sequence[Piece]) -> Result:
        """Return a result with the addresses that its view reads, if a view can show it.

        Args:
            result: The result.
            value: What the function returned.
            pieces: What the value became. What the result shows as a whole, as it does a small
                table, is kept only now.
        """
        if self._shown is None and not result.is_error:
            described = guard(lambda: self._describe_value(value), recover=lambda _error: None)
            original = described or _find_shown(pieces)
            if original is not None and not self.keep(original) and original.kind == "table":
                in_use = guard(lambda: _describe_in_use(value), recover=lambda _error: None)
                if in_use is not None:
                    self.keep(in_use)
        if self._shown is None:
            return result
        original, links = self._shown
        view: dict[str, Any] = {"kind": original.kind, "uri": links[0].uri}
        view["files"] = {
            link.name.rpartition(".")[2]: {
                "uri": link.uri,
                "name": link.name,
                "mimeType": link.mime_type,
            }
            for link in links[: len(original.formats)]
        }
        if original.kind == "table":
            view["uri"] = resource_uris.make_view_uri(links[0].uri)
        elif original.kind != "page":
            view["library"] = resource_uris.make_library_uri(links[0].uri, original.kind)
        return replace(result, meta={**result.meta, meta_keys.VIEW: view})

    def _describe_value(self, value: Any) -> Original | None:
        frame = find_frame(value) or self._whole
        return None if frame is None else describe_table(frame)


def _describe_in_use(value: Any) -> Original | None:
    frame = find_frame(value)
    return None if frame is None else describe_table_in_use(value, frame)


def _find_shown(pieces: Sequence[Piece]) -> Original | None:
    """Return the last original that a view can show."""
    originals = (piece.original for piece in reversed(pieces))
    return next((item for item in originals if item is not None and item.kind), None)
