"""Content blocks out of what Jupyter displays are made of.

Runs in the user's kernel, on the thread of the call. A display offers one thing in several MIME
types; a model gets one of them, the first of this table that says something:

===  ==================================  =======================================================
 1   image/png, image/jpeg, image/webp,  a picture, scaled down if it is too large
     image/gif
 2   text/markdown                       as it is
 3   application/json                    compact JSON
 4   text/latex                          as it is
 5   text/plain                          as it is, unless it only says ``<Foo object at 0x7f...>``
 6   text/html                           as Markdown, and pictures and sounds that it carries
 7   image/svg+xml                       the source if short, else its texts
 8   application/...+json                the specification of an interactive plot, cut short
 9   text/plain                          whatever it says
===  ==================================  =======================================================

Which values become a display at all is `kernel.results`' business.
"""

import base64
import binascii
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Text
from mcp_notebook.kernel import arrays, pictures, sounds
from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.documents import document, uri_of
from mcp_notebook.kernel.excerpts import Draft, data_original, draft
from mcp_notebook.kernel.jsonable import json_text, to_json_part, to_json_value
from mcp_notebook.kernel.originals import Form, Original
from mcp_notebook.kernel.shown import Shown, Unshowable
from mcp_notebook.kernel.texts import clean, cut, is_instance, is_sendable, safe_repr

if TYPE_CHECKING:
    from mcp_notebook.kernel.html import HtmlText

BLOCK_TYPES = (Text, Image, Audio, Resource, ResourceLink)
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAX_SPECIFICATION = 5_000
"""Characters of the JSON of a plot, and of an SVG's source."""
MAX_MEDIA = 100
"""Pictures and sounds that are taken out of one HTML display."""
MUCH_DROPPED = 100_000
"""Characters of scripts, styles and media: with more, HTML is kept whole, too."""

_ONLY_A_NAME = re.compile(r"<[^<>\n]* object( at 0x[0-9a-fA-F]+)?>|<[\w.]+ at 0x[0-9a-fA-F]+>")
_TEXT_FIELDS = frozenset({"text", "uri", "name", "title", "description", "mime_type"})
_WIDGET = "application/vnd.jupyter.widget"


def bundle_blocks(data: Mapping[str, Any], budget: Budget) -> list[ContentBlock]:
    """Make blocks of a display's data.

    Args:
        data: MIME types and values, as IPython's formatters and ``display`` give them.
        budget: What the result may take.
    """
    for mime_type in PICTURES:
        if data.get(mime_type):
            return encoded_picture(data[mime_type], budget)
    text = _text_of(data, budget.chars)
    if text is not None and text.text:
        return [text]
    html = data.get("text/html")
    blocks = _html_blocks(_string(html), budget) if html else []
    if blocks or not data:
        return blocks
    poor = _poor_text_of(data, budget.chars)
    return [Text(poor)] if poor else [Text(f"[a display that has no text: {', '.join(data)}]")]


def encoded_picture(data: Any, budget: Budget) -> list[ContentBlock]:
    """Make a block of an encoded picture: bytes, or base64 as Jupyter's messages have it."""
    return picture(lambda: pictures.from_bytes(_bytes(data), budget), budget)


def picture(make: Callable[[], Shown], budget: Budget) -> list[ContentBlock]:
    """Make blocks of a picture, or of why there is none."""
    try:
        return [make()]
    except Unshowable as error:
        links = budget.keep(error.original) if error.original is not None else ()
        return [Text(f"[{error}]"), *links]


def checked(block: ContentBlock, budget: Budget) -> list[ContentBlock]:
    """Make a block of an author's own fit to be sent: right types, clean strings."""
    # The bridge refuses a frame with a block of wrong types, and the whole link with it.
    # A class of the author's own may have let anything through: as one of ours it is checked.
    kind = next(kind for kind in BLOCK_TYPES if isinstance(block, kind))
    given = {item.name: getattr(block, item.name) for item in fields(kind)}
    if kind is not Text:  # it may be of any length: `draft` sees to it
        given |= _fitting_fields(block, kind)
    block = kind(**given)
    match block:
        case Text():
            brief = clean(block.brief) if isinstance(block.brief, str) else None
            return [replace(draft(block.text), brief=brief)]
        case Image():
            return _checked_image(block, budget)
        case Audio():
            return sounds.sound(block, budget)
        case Resource() if isinstance(block.data, (str, bytes)):
            return document(block, budget)
        case Resource():
            return [Text(f"[Resource(data) holds no bytes but a {type(block.data).__name__}]")]
        case ResourceLink():
            return [replace(block, uri=uri_of(block.uri))]


def as_list(content: Any) -> list[Any]:
    """Return the parts of a `Result`, whose author may have given one without a list."""
    return list(content) if isinstance(content, (list, tuple)) else [content]


def annotated(blocks: list[ContentBlock], like: ContentBlock) -> list[ContentBlock]:
    """Have all that became of a block say of itself what the block says."""
    said = {
        name: value
        for name in ("audience", "priority", "last_modified")
        if (value := getattr(like, name)) not in ((), None)
    }
    return [replace(block, **said) for block in blocks] if said else blocks


def json_block(value: Any, max_items: int, *, repeats: bool = False) -> Text:
    """Make a block of a value's JSON, and keep a reference to the value if it does not fit.

    Args:
        value: Anything.
        max_items: Elements and characters of it that are written.
        repeats: Structured content says the same.
    """
    made, partial = to_json_part(value, max_items)
    text = made if isinstance(made, str) else json_text(made)
    original = data_original(value, lambda: json_text(to_json_value(value, sys.maxsize)))
    return Draft(text, original=original, partial=partial, repeats=repeats)


def _text_of(data: Mapping[str, Any], max_items: int) -> Text | None:
    if data.get("text/markdown"):
        return draft(_string(data["text/markdown"]), ".md", "text/markdown")
    if "application/json" in data:
        return json_block(data["application/json"], max_items)
    if data.get("text/latex"):
        return draft(_string(data["text/latex"]), ".tex", "application/x-latex")
    text = _string(data.get("text/plain") or "")
    # Without a better one, a display's own name is what its text says.
    return None if _ONLY_A_NAME.match(text) and len(data) > 1 else draft(text)


def _poor_text_of(data: Mapping[str, Any], max_items: int) -> str | None:
    if data.get("image/svg+xml"):
        svg = clean(_string(data["image/svg+xml"]))
        if len(svg) <= MAX_SPECIFICATION:
            return svg
        from mcp_notebook.kernel.html import html_text  # noqa: PLC0415 - loads BeautifulSoup

        said = html_text(svg, max_items).text
        return f"[an SVG picture of {len(svg):,} characters; its texts:]\n{said}"
    for mime_type, value in data.items():
        if mime_type.endswith("+json") and not mime_type.startswith(_WIDGET):
            text = cut(json_text(to_json_value(value, max_items)), MAX_SPECIFICATION)
            return f"[an interactive plot, {mime_type}; its specification:]\n{text}"
    return clean(_string(data.get("text/plain") or ""))


def _html_blocks(html: str, budget: Budget) -> list[ContentBlock]:
    from mcp_notebook.kernel.html import html_text  # noqa: PLC0415 - loads BeautifulSoup

    made = html_text(html, budget.chars)
    blocks: list[ContentBlock] = []
    if is_sendable(made.text) or made.read < made.markup:
        blocks.append(_html_draft(html, made))
    for address in made.media[:MAX_MEDIA]:
        kind, _, data = address.removeprefix("data:").partition(",")
        if not kind.endswith(";base64"):
            continue
        mime_type = kind.partition(";")[0]
        if mime_type.startswith("audio/"):
            blocks += sounds.sound(Audio(_bytes(data), mime_type), budget)
        elif mime_type in PICTURES:
            blocks += encoded_picture(data, budget)
    return blocks


def _html_draft(html: str, made: "HtmlText") -> Text:
    text = clean(made.text)
    if made.read < made.markup:
        gone = f"{made.markup - made.read:,} of {made.markup:,} characters of HTML"
        text = f"{text}\n[... {gone} left out ...]".lstrip()
    original = Original(
        name="page",
        title=f"The whole HTML: {len(html):,} characters",
        forms=(Form(".html", "text/html", lambda: clean(html)),),
        cost=sys.getsizeof(html),
    )
    dropped = len(html) - made.markup > MUCH_DROPPED
    return Draft(text, original=original, partial=made.read < made.markup or dropped)


def _fitting_fields(block: ContentBlock, kind: type[ContentBlock]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in fields(kind):
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
    return changes


def _checked_image(block: Image, budget: Budget) -> list[ContentBlock]:
    return annotated(picture(lambda: _marked(block, budget), budget), block)


def _marked(block: Image, budget: Budget) -> Shown:
    """Make the picture that an author marked as one."""
    data = block.data
    if isinstance(data, bytes):
        return pictures.from_bytes(data, budget)
    if is_instance(data, "PIL.Image.Image"):
        return pictures.from_pil(data, budget, block.mime_type)
    if arrays.is_array(data):
        return pictures.from_pil(arrays.image_of(data), budget, block.mime_type)
    name = type(data).__name__
    text = f"Image(data) takes a picture's encoded bytes, a PIL image or an array, not a {name}"
    if isinstance(data, (str, os.PathLike)):
        raise Unshowable(f"{text}: for a file, Image(pathlib.Path(path).read_bytes()).")
    raise Unshowable(f"{text}.")


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
