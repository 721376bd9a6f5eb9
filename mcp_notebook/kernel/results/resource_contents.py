"""The contents of a resource that a function makes: whole, and of the MIME type that it declares.

Runs in the user's kernel, on the thread of the call. Texts, bytes, files, tables and data have a
form of their own for each MIME type. Everything else becomes what it is in a tool's result: a
figure its picture, an object its text.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp_notebook.content import (
    Audio,
    ContentBlock,
    Image,
    Message,
    Resource,
    ResourceLink,
    Result,
    Text,
)
from mcp_notebook.errors import ResourceFailed
from mcp_notebook.kernel.results.blocks.embedded import BINARY
from mcp_notebook.kernel.results.files.file_contents import find_mime_type
from mcp_notebook.kernel.results.files.returned_files import is_path
from mcp_notebook.kernel.results.plots import matplotlib_figures
from mcp_notebook.kernel.results.tables.exports import CSV, PARQUET, write_csv, write_parquet
from mcp_notebook.kernel.results.tables.table_text import find_frame
from mcp_notebook.kernel.safe.text import replace_surrogates
from mcp_notebook.kernel.safe.to_json import (
    TooDeep,
    TooLarge,
    format_json_lines,
    is_jsonable,
    to_whole_json,
)

JSON = "application/json"
MAX_CONTENT = 16 * 2**20
"""Maximum bytes of a file; the bridge sends no larger content."""
MAX_ELEMENTS = 2**22
"""Maximum elements and characters of data that is written as JSON."""
_BLOCKS = (Text, Image, Audio, Resource, ResourceLink, Result, Message)
_TEXTS = (JSON, "application/xml", "application/javascript", "image/svg+xml")

ReadFile = Callable[[Any, str, int], bytes]
"""Returns at most so many bytes of a file, given its path and its name in messages."""
Render = Callable[[], Sequence[ContentBlock]]
"""Returns the blocks that the value, and what the function displayed, are in a result."""


def make_contents(
    value: Any, mime_type: str | None, read_file: ReadFile, render: Render
) -> list[Resource]:
    """Return what a client reads; the URIs are empty, which the bridge knows.

    Args:
        value: What the function returned.
        mime_type: The declared MIME type; None: what suits the value.
        read_file: Reads a file that may be shown.
        render: For values without a form of their own.

    Raises:
        CallError: The value has no such content.
    """
    if isinstance(value, str):
        return [Resource("", replace_surrogates(value), mime_type or "text/plain")]
    if isinstance(value, bytes | bytearray | memoryview):
        return [_make_resource(bytes(value), mime_type or BINARY)]
    if is_path(value):
        return [_read_path(value, mime_type, read_file)]
    if value is not None and not _has_blocks(value):
        found = _write_table(value, mime_type) or _write_data(value, mime_type)
        if found is not None:
            return [found]
    blocks = render()
    is_picture = matplotlib_figures.can_draw(value) or (mime_type or "").startswith("image/")
    if is_picture and any(isinstance(block, Image) for block in blocks):
        # A resource is the picture itself, without the line that a model reads beside it.
        blocks = [block for block in blocks if not isinstance(block, Text)]
    if value is not None and any(isinstance(block, Text) for block in blocks):
        _check_text(value, mime_type)
    contents = [
        content for block in blocks if (content := _make_content(block, mime_type)) is not None
    ]
    if not contents:
        raise ResourceFailed(
            "Its function returned nothing: it has to return text, bytes, a table, data, a plot or "
            "the path of a file, or to display something."
        )
    return contents


def _check_text(value: Any, mime_type: str | None) -> None:
    """Refuse a value of which the text would be sent as something that it is not."""
    if mime_type is None or mime_type in _TEXTS:
        return
    if mime_type == CSV or not mime_type.startswith("text/"):
        other = "a table, " if mime_type in (CSV, PARQUET) else ""
        raise ResourceFailed(
            f"Its function returned a value of type {type(value).__name__}, which cannot be "
            f"written as {mime_type}: it has to return {other}text, bytes or the path of a file."
        )


def _has_blocks(value: Any) -> bool:
    return isinstance(value, _BLOCKS) or (
        isinstance(value, list | tuple) and any(isinstance(item, _BLOCKS) for item in value)
    )


def _read_path(path: Any, mime_type: str | None, read_file: ReadFile) -> Resource:
    name = os.fsdecode(path)
    data = read_file(path, name, MAX_CONTENT + 1)
    return _make_resource(data, mime_type or find_mime_type(Path(name)) or BINARY)


def _make_resource(data: bytes, mime_type: str) -> Resource:
    """Return bytes, as text if their MIME type is that of a text."""
    if mime_type.startswith("text/") or mime_type.partition(";")[0] in _TEXTS:
        try:
            return Resource("", data.decode("utf-8-sig"), mime_type)
        except UnicodeDecodeError:
            pass
    return Resource("", data, mime_type)


def _write_table(value: Any, mime_type: str | None) -> Resource | None:
    """Return a table as CSV, JSON or Parquet; None for anything else."""
    if mime_type not in (None, CSV, JSON, PARQUET):
        return None
    if mime_type is None and isinstance(value, list):
        return None  # dicts of one shape are data, unless a table is wanted
    frame = find_frame(value)
    if frame is None:
        return None
    if mime_type == PARQUET:
        return Resource("", write_parquet(frame), PARQUET)
    return None if mime_type == JSON else Resource("", write_csv(frame), CSV)


def _write_data(value: Any, mime_type: str | None) -> Resource | None:
    """Return data as JSON; None if it is not wanted, or not data."""
    is_data = mime_type is None and isinstance(value, Mapping | list | tuple)
    if mime_type != JSON and not (is_data and is_jsonable(value)):
        return None
    try:
        return Resource("", format_json_lines(to_whole_json(value, MAX_ELEMENTS)), JSON)
    except TooDeep as error:
        raise ResourceFailed(f"The resource cannot be written as JSON: {error}.") from None
    except TooLarge:
        raise ResourceFailed(
            f"The resource has more than {MAX_ELEMENTS:,} elements and characters of JSON: return "
            "less, or a table as CSV."
        ) from None


def _make_content(block: ContentBlock, mime_type: str | None) -> Resource | None:
    match block:
        case Text() if block.text:
            return Resource("", block.text, mime_type or "text/plain")
        case Image() | Audio():
            return Resource("", block.data, block.mime_type)
        case Resource():
            return block
        case ResourceLink():
            return Resource("", block.uri, "text/uri-list")
    return None
