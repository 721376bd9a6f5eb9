"""Makes content blocks of encoded images, of JSON, and of the blocks that authors return.

Runs in the user's kernel, on the thread of the call.
"""

import base64
import binascii
import os
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from pathlib import Path, PurePath
from typing import Any

from msgspec import structs

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Text
from mcp_notebook.kernel.results.blocks import audio, images
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import normalize_uri, render_resource
from mcp_notebook.kernel.results.blocks.image_block import Unshowable
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original, estimate_memory
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import clean_text, cut_text, safe_repr
from mcp_notebook.kernel.safe.to_json import (
    TooLarge,
    format_json_lines,
    to_whole_json,
)
from mcp_notebook.text.wording import count

BLOCK_TYPES = (Text, Image, Audio, Resource, ResourceLink)
MAX_DESCRIPTION = 2_000
"""Characters of a block's name, title or description."""
MAX_URI = 8_000
"""Characters of a block's URI."""
MAX_JSON = 2**24
"""Elements and characters of the largest value that is written as JSON."""
_COLLECTIONS = frozenset({list, tuple, dict, set, frozenset})
_UNCUT_FIELDS = frozenset({"uri", "data"})
_TEXT_FIELDS = frozenset({"text", "uri", "name", "title", "description", "mime_type"})


def render_encoded_image(data: Any, budget: Budget) -> list[Piece]:
    """Render an encoded picture: bytes, or base64 as in Jupyter's messages."""
    return render_image(lambda: images.fit_image(decode_bytes(data), budget), budget)


def render_image(make: Callable[[], Piece], budget: Budget) -> list[Piece]:
    """Render an image, or the reason why it cannot be shown.

    Args:
        make: Makes the image, or raises `Unshowable`.
        budget: The limits of the result.
    """
    try:
        return [make()]
    except Unshowable as error:
        links = budget.keep(error.original) if error.original is not None else ()
        return [Piece(Text(f"[{error}]")), *map(Piece, links)]


def check_block(block: ContentBlock, budget: Budget) -> list[Piece]:
    """Render a block that an author made, with valid types and clean strings."""
    # The bridge closes the link if a frame has a block with wrong types.
    # A subclass may have skipped the checks of our class, so it is rebuilt as ours.
    kind = next(kind for kind in BLOCK_TYPES if isinstance(block, kind))
    values = {item.name: getattr(block, item.name) for item in fields(kind)}
    if kind is not Text:  # which may have any length
        values |= _fit_fields(block, kind)
    block = kind(**values)
    match block:
        case Text():
            return [make_text_piece(block.text)]
        case Image():
            return _check_image(block, budget)
        case Audio():
            return audio.render_audio(block, budget)
        case Resource() | ResourceLink():
            return _check_addressed(block, budget)


def list_parts(content: Any) -> list[Any]:
    """Return the parts of a `Result`; a single part needs no list."""
    return list(content) if isinstance(content, (list, tuple)) else [content]


def copy_annotations(pieces: list[Piece], like: ContentBlock) -> list[Piece]:
    """Copy the annotations of a block to the pieces made from it."""
    annotations = {
        name: value
        for name in ("audience", "priority", "last_modified", "role")
        if (value := getattr(like, name)) not in ((), None)
    }
    return [_change_block(piece, **annotations) for piece in pieces] if annotations else pieces


def _change_block(piece: Piece, **changes: Any) -> Piece:
    return structs.replace(piece, block=replace(piece.block, **changes))


def describe_size(value: Any) -> str:
    """Return how many items a collection has, in words."""
    if type(value) in _COLLECTIONS:
        return count(len(value), "item")
    return "the value"


def describe_whole_json(value: Any) -> Original:
    """Describe the whole JSON of a value.

    A reference to the value is kept, so the JSON shows what the tool changes later.
    """
    form = FileFormat(".json", "application/json", lambda: _write_whole_json(value))
    title = "The whole value as JSON, as of when it is read"
    return Original("value", title, (form,), estimate_memory(value))


def _write_whole_json(value: Any) -> str:
    try:
        return format_json_lines(to_whole_json(value, MAX_JSON))
    except TooLarge:
        # Nested references to one list take little memory, but fill all of it as text.
        raise ValueError(f"it has more than {MAX_JSON:,} elements and characters") from None


def _fit_fields(block: ContentBlock, kind: type[ContentBlock]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in fields(kind):
        value = getattr(block, item.name)
        if value is None and item.default is not MISSING:
            changes[item.name] = item.default
        elif isinstance(value, str):
            text = clean_text(value)
            is_cut = item.name not in _UNCUT_FIELDS
            changes[item.name] = cut_text(text, MAX_DESCRIPTION) if is_cut else text
        elif isinstance(value, PurePath) and item.name in _TEXT_FIELDS:
            changes[item.name] = _write_path(value, as_uri=item.name == "uri")
        elif item.name in _TEXT_FIELDS:
            changes[item.name] = safe_repr(value)
        elif isinstance(value, (bytearray, memoryview)):
            changes[item.name] = bytes(value)
    if isinstance(block, ResourceLink) and not isinstance(block.size, int):
        changes["size"] = None
    return changes


def _write_path(path: PurePath, *, as_uri: bool) -> str:
    # A path of another system is read as one of this machine.
    return clean_text(Path(path).absolute().as_uri() if as_uri else str(path))


def _check_addressed(block: Resource | ResourceLink, budget: Budget) -> list[Piece]:
    if len(block.uri) > MAX_URI:
        size = f"{len(block.uri):,} characters, at most {MAX_URI:,} are sent"
        name = type(block).__name__
        return [Piece(Text(f"[{name}(uri) begins with {block.uri[:40]!r} and has {size}.]"))]
    if isinstance(block, ResourceLink):
        return [Piece(replace(block, uri=normalize_uri(block.uri)))]
    if isinstance(block.data, (str, bytes)):
        return render_resource(block, budget)
    text = f"[Resource(data) takes str or bytes, not an object of type {type(block.data).__name__}]"
    return [Piece(Text(text))]


def _check_image(block: Image, budget: Budget) -> list[Piece]:
    return copy_annotations(render_image(lambda: _encode_image(block, budget), budget), block)


def _encode_image(block: Image, budget: Budget) -> Piece:
    """Encode the data of an `Image` block."""
    data = block.data
    if isinstance(data, bytes):
        return images.fit_image(data, budget)
    if is_instance(data, "PIL.Image.Image"):
        return images.encode_pil_image(data, budget, block.mime_type)
    if images.is_array(data):
        return images.encode_pil_image(images.convert_array(data), budget, block.mime_type)
    name = f"an object of type {type(data).__name__}"
    text = f"Image(data) takes a picture's encoded bytes, a PIL image or an array, not {name}"
    if isinstance(data, (str, os.PathLike)):
        raise Unshowable(f"{text}: for a file, Image(pathlib.Path(path).read_bytes()).")
    raise Unshowable(f"{text}.")


def decode_bytes(data: Any) -> bytes:
    """Return a display's data as bytes; base64 is decoded, and anything else is empty."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    try:
        return base64.b64decode(join_lines(data))
    except (binascii.Error, ValueError):
        return b""


def join_lines(value: Any) -> str:
    """Return a display's text."""
    # A notebook file holds a list of lines where a message holds one string.
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    return value if isinstance(value, str) else str(value)
