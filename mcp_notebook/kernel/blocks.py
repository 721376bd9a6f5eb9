"""Content blocks out of what Jupyter displays are made of.

Runs in the user's kernel, on the thread of the call. A display offers one thing in several MIME
types; a model gets one of them, the first of this table that says something:

===  ==================================  =======================================================
 1   text/latex                          as it is, if it comes with a picture of the same formula
 2   image/png, image/jpeg, image/webp,  a picture, scaled down if it is too large
     image/gif
 3   application/vnd.plotly...,          a picture, where what draws it is installed; else the
     application/vnd.vega..., scripts    data and layout as compact JSON, with a note that says
     and pages of plots in HTML          what to install; the whole of it as a link
     (`kernel.plots`)
 4   text/markdown                       as it is
 5   application/json                    compact JSON
 6   text/latex                          as it is, and text/plain below it if that says something
 7   image/svg+xml                       a picture, where CairoSVG or vl-convert is installed, and
                                         the SVG as a link; else the source if short, or its texts
 8   text/plain                          as it is, unless it only says ``<Foo object at 0x7f...>``
 9   text/html                           its text, pictures and sounds that it carries in itself,
                                         notes of videos and of pages within it (`kernel.media`)
10   application/...+json                its JSON, cut short
11   application/javascript              a note
12   text/plain                          whatever it says
===  ==================================  =======================================================

A picture comes first since a plot is made to be looked at; a formula is not, and LaTeX says more of
it in less. A plot's own JSON comes before text: the text beside it says how to see it.

Which values become a display at all is `kernel.results`' business.
"""

import base64
import binascii
import math
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Text
from mcp_notebook.kernel import pictures, plots, svg
from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.jsonable import json_text, to_json_value
from mcp_notebook.kernel.media import Medium, media_of
from mcp_notebook.kernel.originals import Form, Original
from mcp_notebook.kernel.renderers import NotDrawn
from mcp_notebook.kernel.specs import compact
from mcp_notebook.kernel.texts import clean, cut, html_text, is_sendable, safe_repr

BLOCK_TYPES = (Text, Image, Audio, Resource, ResourceLink)
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAX_SPECIFICATION = 5_000
"""Characters of the JSON of a plot, and of an SVG's source."""
_MAX_BESIDE = 1_000
"""Characters of the plain text that comes with LaTeX."""
_PYGMENTS = "\\begin{Verbatim}[commandchars"
"""How IPython's ``Code`` begins in LaTeX, which is its colours more than its text."""

_ONLY_A_NAME = re.compile(r"<[^<>\n]* object( at 0x[0-9a-fA-F]+)?>|<[\w.]+ at 0x[0-9a-fA-F]+>")
_TEXT_FIELDS = frozenset(
    {"text", "uri", "name", "title", "description", "mime_type", "last_modified"}
)
_ANNOTATIONS = frozenset({"audience", "priority"})
_WIDGET = "application/vnd.jupyter.widget"


def bundle_blocks(data: Mapping[str, Any], budget: Budget) -> list[ContentBlock]:
    """Make blocks of a display's data.

    Args:
        data: MIME types and values, as IPython's formatters and ``display`` give them.
        budget: What the result may take.
    """
    for mime_type in () if data.get("text/latex") else PICTURES:
        if data.get(mime_type):
            return encoded_picture(data[mime_type], budget)
    plot = plots.plot_in(data)
    if plot is not None:
        return plot_blocks(plot, budget)
    if text := _text_of(data, budget.chars):
        return [Text(text)]
    if data.get("image/svg+xml"):
        return _svg_blocks(clean(_string(data["image/svg+xml"])), budget)
    return _plain_or_html_blocks(data, budget)


def _plain_or_html_blocks(data: Mapping[str, Any], budget: Budget) -> list[ContentBlock]:
    if text := _plain_of(data):
        return [Text(text)]
    html = data.get("text/html")
    blocks = _html_blocks(_string(html), budget) if html else []
    if blocks or not data:
        return blocks
    poor = _poor_text_of(data)
    return [Text(poor or f"[a display that has no text: {', '.join(data)}]")]


def plot_blocks(plot: plots.Plot, budget: Budget) -> list[ContentBlock]:
    """Make blocks of a plot: its picture, or what it is made of; and links to the whole of it."""
    note = plot.note
    shown: list[ContentBlock] = []
    if plot.draw is not None:
        try:
            shown = encoded_picture(plot.draw(budget.picture_side, budget.renderers), budget)
        except NotDrawn as error:
            note = str(error)
    if not shown:
        text = plot.text(min(MAX_SPECIFICATION, max(budget.chars - len(note), 0)))
        shown = [Text(f"[{plot.kind}, not drawn here: {note}. What it is made of:]\n{clean(text)}")]
    return [*shown, *budget.keep(plot.original)]


def encoded_picture(data: Any, budget: Budget) -> list[ContentBlock]:
    """Make a block of an encoded picture: bytes, or base64 as Jupyter's messages have it."""
    try:
        return picture(pictures.from_bytes(_bytes(data), budget))
    except ValueError as error:
        return [Text(f"[{error}]")]


def picture(made: pictures.Picture) -> list[ContentBlock]:
    """Make blocks of a picture and of what was done to it."""
    note: list[ContentBlock] = [Text(made.note)] if made.note else []
    return [Image(made.data, made.mime_type), *note]


def checked(block: ContentBlock, budget: Budget) -> list[ContentBlock]:
    """Make a block of an author's own fit to be sent: right types, clean strings."""
    # The bridge refuses a frame with a block of wrong types, and the whole link with it.
    block = replace(block, **_fitting_fields(block), **_fitting_annotations(block))
    if isinstance(block, Image):
        return _checked_image(block, budget)
    if isinstance(block, (Audio, Resource)):
        wanted = (str, bytes) if isinstance(block, Resource) else (bytes,)
        if not isinstance(block.data, wanted):
            of = f"{type(block).__name__}(data) holds no bytes but a {type(block.data).__name__}"
            return [Text(f"[{of}]")]
    return [block]


def _text_of(data: Mapping[str, Any], max_items: int) -> str | None:
    if data.get("text/markdown"):
        return clean(_string(data["text/markdown"]))
    if "application/json" in data:
        return json_text(to_json_value(data["application/json"], max_items))
    latex = clean(_string(data.get("text/latex") or ""))
    if not latex or latex.startswith(_PYGMENTS):
        return None
    plain = _plain_of(data) or ""
    return f"{latex}\n\n{plain}" if 0 < len(plain) <= _MAX_BESIDE else latex


def _plain_of(data: Mapping[str, Any]) -> str | None:
    plain = data.get("text/plain")
    text = clean(_string(plain)) if plain else ""
    # Without a better one, a display's own name is what its text says.
    return None if _ONLY_A_NAME.fullmatch(text) and len(data) > 1 else text


def _svg_blocks(source: str, budget: Budget) -> list[ContentBlock]:
    try:
        drawn = svg.draw(source, budget.picture_side, budget.renderers)
        shown = encoded_picture(drawn, budget)
    except NotDrawn as error:
        size = min(MAX_SPECIFICATION, budget.chars)
        if len(source) <= size:
            return [Text(source)]
        texts = svg.texts_of(source) or "(none)"
        note = (
            f"[an SVG picture of {len(source):,} characters, not drawn here: {error}. Its texts:]"
        )
        shown = [Text(f"{note}\n{cut(clean(texts), size)}")]
    encoded = source.encode()
    form = Form(".svg", "image/svg+xml", lambda: source, len(encoded))
    return [
        *shown,
        *budget.keep(Original("picture", "The SVG of a picture", (form,), len(encoded))),
    ]


def _poor_text_of(data: Mapping[str, Any]) -> str | None:
    for mime_type, value in data.items():
        if mime_type.endswith("+json") and not mime_type.startswith(_WIDGET):
            text = compact(value, MAX_SPECIFICATION)
            return f"[{mime_type}, which is for a notebook to show:]\n{text}"
    if data.get("application/javascript"):
        return "[JavaScript, which only a notebook runs]"
    return clean(_string(data.get("text/plain") or ""))


def _html_blocks(html: str, budget: Budget) -> list[ContentBlock]:
    text, media = html_text(html)
    blocks: list[ContentBlock] = [Text(clean(text))] if is_sendable(text) else []
    for address in media:
        kind, _, data = address.removeprefix("data:").partition(",")
        if not kind.endswith(";base64"):
            continue
        mime_type = kind.partition(";")[0]
        if mime_type.startswith("audio/"):
            blocks.append(Audio(_bytes(data), mime_type))
        elif mime_type in PICTURES:
            blocks += encoded_picture(data, budget)
    return [*blocks, *(block for medium in media_of(html) for block in _medium(medium, budget))]


def _medium(medium: Medium, budget: Budget) -> list[ContentBlock]:
    if medium.page:
        text = clean(html_text(medium.page)[0])
        page = Form(".html", "text/html", lambda: medium.page, len(medium.page.encode()))
        original = Original("page", "A page within a page", (page,), len(medium.page))
        return [Text(f"[{medium.note}:]\n{text}"), *budget.keep(original)]
    links: tuple[ResourceLink, ...] = ()
    if medium.data:
        extension = mimetypes.guess_extension(medium.mime_type) or ".bin"
        form = Form(extension, medium.mime_type, lambda: medium.data, len(medium.data))
        links = budget.keep(Original("video", medium.note, (form,), len(medium.data)))
    return [Text(f"[{clean(medium.note)}]"), *links]


def _fitting_fields(block: ContentBlock) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in fields(block):
        value = getattr(block, item.name)
        if value is None and item.default is not MISSING:
            changes[item.name] = item.default
        elif isinstance(value, str):
            changes[item.name] = clean(value)
        elif item.name in _TEXT_FIELDS:
            changes[item.name] = safe_repr(value)
        elif isinstance(value, (bytearray, memoryview)):
            changes[item.name] = bytes(value)
    if isinstance(block, ResourceLink) and not isinstance(block.size, int):
        changes["size"] = None
    return {name: value for name, value in changes.items() if name not in _ANNOTATIONS}


def _fitting_annotations(block: ContentBlock) -> dict[str, Any]:
    audience = (block.audience,) if isinstance(block.audience, str) else block.audience or ()
    priority = math.nan if block.priority is None else float(block.priority)
    return {
        "audience": tuple(name for name in audience if name in ("user", "assistant")),
        "priority": None if math.isnan(priority) else min(max(priority, 0.0), 1.0),
    }


def _checked_image(block: Image, budget: Budget) -> list[ContentBlock]:
    try:
        if not isinstance(block.data, bytes):
            name = type(block.data).__name__
            raise TypeError(f"Image(data) takes a picture's encoded bytes, not a {name}.")  # noqa: TRY301
        made = pictures.from_bytes(block.data, budget)
    except (TypeError, ValueError) as error:
        return [Text(f"[{error}]")]
    fitting = replace(block, data=made.data, mime_type=made.mime_type)
    return [fitting, *picture(made)[1:]]


def _bytes(data: Any) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    try:
        return base64.b64decode(_string(data))
    except (binascii.Error, ValueError):
        return b""


def _string(value: Any) -> str:
    # A notebook file has a list of lines where a message has one text.
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    return value if isinstance(value, str) else str(value)
