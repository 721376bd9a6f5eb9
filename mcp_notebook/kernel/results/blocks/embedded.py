"""Renders documents: embedded in the result if small, otherwise as a link.

Runs in the user's kernel, on the thread of the call. Handles an author's
`content.Resource`, and everything else that is sent whole or not at all.
"""

import mimetypes
import sys
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from pydantic_core import Url, ValidationError

from mcp_notebook.content import Resource, Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import NOT_KEPT, Piece
from mcp_notebook.kernel.safe.text import clean_text, cut_text
from mcp_notebook.text.wording import format_size

BINARY = "application/octet-stream"
"""The MIME type of bytes of unknown format."""
_URI_CHARS = "%/:?#[]@!$&'()*+,;="


def render_resource(block: Resource, budget: Budget) -> list[Piece]:
    """Render a document, or a note and a link if it is too large.

    Args:
        block: The document; its fields have the right types.
        budget: The limits of the result; bytes are limited like those of a picture.
    """
    block = replace(block, uri=normalize_uri(block.uri), mime_type=_choose_mime_type(block))
    data = block.data
    if len(data) <= (budget.chars if isinstance(data, str) else budget.picture_bytes):
        return [Piece(block)]
    size = f"{len(data):,} characters" if isinstance(data, str) else format_size(len(data))
    what = f"The resource {block.uri} ({block.mime_type}, {size})"
    file = PurePosixPath(unquote(urlsplit(block.uri).path))
    file_format = FileFormat(
        file.suffix or mimetypes.guess_extension(block.mime_type) or "",
        block.mime_type,
        lambda: data,
        None if isinstance(data, str) else len(data),
    )
    original = Original(
        clean_text(file.stem) or "resource", what, (file_format,), sys.getsizeof(data)
    )
    pieces = link_original(what, original, budget)
    if len(pieces) == 1 and isinstance(data, str):  # nothing was kept: show both ends
        return [Piece(replace(block, data=cut_text(data, budget.chars, NOT_KEPT)))]
    return pieces


def link_original(what: str, original: Original, budget: Budget) -> list[Piece]:
    """Say that something is too large for the result, and link to it.

    Args:
        what: Its name and size, with which the sentence begins.
        original: The document.
        budget: Keeps the original.
    """
    links = budget.keep(original)
    reading = ": read it through the link below" if links else ", and too large to be kept"
    text = f"[{what} is too large for the result{reading}.]"
    return [Piece(Text(text)), *map(Piece, links)]


def normalize_uri(text: str) -> str:
    """Return a valid URI; text that is not a URI becomes one with the scheme ``notebook``."""
    uri = quote(text.strip(), safe=_URI_CHARS + "~")
    try:
        Url(uri)  # strict clients refuse a whole result for one invalid URI
    except (ValidationError, ValueError):
        return f"notebook:///{quote(text.strip().lstrip('/'), safe='/')}"
    return uri


def _choose_mime_type(block: Resource) -> str:
    default = Resource.mime_type
    if isinstance(block.data, str) or block.mime_type not in ("", default):
        return block.mime_type or default
    try:
        block.data.decode()
    except UnicodeDecodeError:
        return mimetypes.guess_type(block.uri)[0] or BINARY
    return default
