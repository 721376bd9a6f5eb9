"""The limits of one result, and where the originals of what exceeds them are kept.

Pure data. A `Budget` is passed through the whole conversion of a value, on the thread of the call.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mcp_notebook.kernel.results.blocks.originals import OriginalSink, discard_original
from mcp_notebook.settings.limits import DEFAULT_LIMITS


def ignore_table(_frame: Any) -> None:
    """Do nothing, where the result has no live view."""


class Budget(Struct, frozen=True, kw_only=True):
    """The limits of one result; `keep` takes the originals of what exceeds them."""

    chars: int = DEFAULT_LIMITS.max_result_chars
    """Total characters of all texts."""
    pictures: int = 8
    """Maximum number of pictures."""
    picture_side: int = 1_568
    """Maximum pixels on the longer side of a picture: vision models scale larger ones down."""
    picture_bytes: int = 2**19
    """Maximum bytes of one encoded picture, sound or document, at most `result_bytes`."""
    result_bytes: int = 2**19
    """Total bytes of all pictures, sounds and documents. As base64, they take four thirds of it,
    so that the JSON of a result stays below 1 MiB, the limit of some clients."""
    table_rows: int = 50
    """Maximum rows of a table that is shown whole, if it has at most six cells for each of them."""
    keep: OriginalSink = discard_original
    note_table: Callable[[Any], None] = ignore_table
    """Takes the frame of each table that is shown whole."""
