"""Documents in results: embedded where they are small, else behind a link.

Runs in the user's kernel, on the thread of the call. An author's `content.Resource`, and what else
is sent whole or not at all, comes through here. Reading files is `kernel.results.files`' business,
keeping what did not fit `kernel.link.resource_store`'.
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
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.safe.text import clean_text, cut_text

BINARY = "application/octet-stream"
"""MIME type of bytes of which nothing is known."""
_IN_URIS = "%/:?#[]@!$&'()*+,;="
_KILO = 1_000


def render_resource(block: Resource, budget: Budget) -> list[Piece]:
    """Make blocks of a document: itself, or a sentence and a link where it is too large.

    Args:
        block: The document, of right types.
        budget: A text may have all of its characters, bytes may be as many as a picture's.
    """
    block = replace(block, uri=normalize_uri(block.uri), mime_type=_type_of(block))
    data = block.data
    if len(data) <= (budget.chars if isinstance(data, str) else budget.picture_bytes):
        return [Piece(block)]
    size = f"{len(data):,} characters" if isinstance(data, str) else format_size(len(data))
    what = f"The resource {block.uri} ({block.mime_type}, {size})"
    file = PurePosixPath(unquote(urlsplit(block.uri).path))
    form = FileFormat(
        file.suffix or mimetypes.guess_extension(block.mime_type) or "",
        block.mime_type,
        lambda: data,
        None if isinstance(data, str) else len(data),
    )
    original = Original(clean_text(file.stem) or "resource", what, (form,), sys.getsizeof(data))
    made = link_original(what, original, budget)
    if len(made) == 1 and isinstance(data, str):  # its beginning and end are better than nothing
        return [Piece(replace(block, data=cut_text(data, budget.chars)))]
    return made


def link_original(what: str, original: Original, budget: Budget) -> list[Piece]:
    """Make a sentence of what is too large for a result, and links to it.

    Args:
        what: What it is, with its size; the beginning of the sentence.
        original: The whole of it.
        budget: Keeps it.
    """
    links = budget.keep(original)
    then = (
        "read it by the link that follows"
        if links
        else "and too large to be kept for a client to read"
    )
    text = f"[{what} is too large to be part of the result: {then}.]"
    return [Piece(Text(text)), *map(Piece, links)]


def normalize_uri(given: str) -> str:
    """Return an author's URI as clients take it; what is none becomes one of the notebook's."""
    uri = quote(given.strip(), safe=_IN_URIS + "~")
    try:
        Url(uri)  # what strict clients read it with: one that they refuse costs the whole result
    except (ValidationError, ValueError):
        return f"notebook:///{quote(given.strip().lstrip('/'), safe='/')}"
    return uri


def format_size(size: int) -> str:
    """Return a number of bytes as people say it."""
    if size < _KILO:
        return f"{size} bytes"
    number, unit = float(size), "bytes"
    for unit in ("kB", "MB", "GB", "TB"):  # noqa: B007 - the last one counts
        number /= _KILO
        if number < _KILO:
            break
    return f"{number:.3g} {unit}" if number < _KILO else f"{number:,.0f} {unit}"


def _type_of(block: Resource) -> str:
    default = Resource.mime_type
    if isinstance(block.data, str) or block.mime_type not in ("", default):
        return block.mime_type or default
    try:
        block.data.decode()
    except UnicodeDecodeError:
        return mimetypes.guess_type(block.uri)[0] or BINARY
    return default
