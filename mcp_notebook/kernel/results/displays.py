"""Renders Jupyter's displays, which are bundles of MIME types.

Runs in the user's kernel, on the thread of the call. A display has one thing in several MIME types.
A model gets one of them, the first of this table that has content:

===  ==================================  =======================================================
 1   text/latex                          as it is, if it comes with a picture of the same formula
 2   image/png, image/jpeg, image/webp,  a picture, scaled down if it is too large
     image/gif
 3   application/vnd.plotly...,          a picture, where what draws it is installed; else the
     application/vnd.vega..., scripts    data and layout as compact JSON, with a note that says
     and pages of plots in HTML          what to install; the whole of it as a link
     (`kernel.results.plots.detect`)
 4   text/markdown                       as it is
 5   application/json                    compact JSON
 6   text/latex                          as it is, and text/plain below it if that says something;
                                         a table in LaTeX only if there is nothing else
 7   image/svg+xml                       a picture, where vl-convert is installed, and the SVG as a
                                         link; else the source if short, or its texts
 8   text/plain                          as it is, unless it only says ``<Foo object at 0x7f...>``
                                         or the HTML beside it has a picture in it
 9   text/html                           its text, pictures and sounds that it carries in itself,
                                         notes of videos and of pages within it
10   other text/...                      as it is
11   application/...+json                its JSON, cut short
12   application/javascript              a note
13   text/plain                          what it says, but for the name of a display
===  ==================================  =======================================================

A picture comes first since a plot is made to be looked at. For a formula, LaTeX is shorter and more
exact. A plot's JSON comes before its text, which only says how to display it.

"""

import re
import sys
from collections.abc import Callable, Mapping
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from msgspec import structs

from mcp_notebook.content import Audio, Image, Text
from mcp_notebook.kernel.results.blocks import audio
from mcp_notebook.kernel.results.blocks.author_blocks import (
    decode_bytes,
    describe_whole_json,
    join_lines,
    render_encoded_image,
)
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.results.plots import detect, matplotlib_figures
from mcp_notebook.kernel.results.plots.figure_text import describe_figure
from mcp_notebook.kernel.results.plots.renderer import NotDrawn
from mcp_notebook.kernel.results.plots.spec import compact_json
from mcp_notebook.kernel.results.tables.outline import render_json
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.text import (
    clean_text,
    cut_text,
    describe_error,
    drop_addresses,
    is_sendable,
)

if TYPE_CHECKING:
    from mcp_notebook.kernel.results.html.to_markdown import HtmlContent

PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAX_SPECIFICATION = 5_000
"""Maximum characters of a plot's JSON or an SVG's source."""
MAX_MEDIA = 100
"""Maximum pictures and sounds of one HTML display."""
MUCH_DROPPED = 100_000
"""With more characters of scripts, styles and media, the whole HTML is kept as an original."""
_MAX_BESIDE = 1_000
"""Maximum characters of the plain text beside LaTeX."""
_PYGMENTS = "\\begin{Verbatim}[commandchars"
"""The beginning of IPython's ``Code`` as LaTeX, which is mostly colours."""
_TABULAR = re.compile(r"\\begin\{(?:long)?tab(?:le|ular)")
"""A table in LaTeX; its other MIME types are easier to read."""
_ONLY_A_NAME = re.compile(
    r"<(?:[^<>\n]|<locals>)* object(?: at 0x[0-9a-fA-F]+)?>"
    r"|<(?:[\w.]|<locals>)+(?: at 0x[0-9a-fA-F]+)?>|<class '(?:[\w.]|<locals>)+'>"
)
_PICTURE_IN_HTML = re.compile(r"""\bsrc\s*=\s*["']?data:image/[^"'\s>]{1000}""", re.IGNORECASE)
"""A picture in HTML; a shorter one is an icon."""
_TEXTS = ("text/plain", "text/html", "text/latex", "text/markdown")
_WIDGET = "application/vnd.jupyter.widget"


def render_mime_bundle(data: Mapping[str, Any], budget: Budget) -> list[Piece]:
    """Render a MIME bundle.

    Args:
        data: MIME types and values, as IPython's formatters and ``display`` give them.
        budget: The limits of the result.
    """
    for mime_type in () if data.get("text/latex") else PICTURES:
        if data.get(mime_type):
            return render_encoded_image(data[mime_type], budget)
    plot = detect.find_plot_in_display(data)
    if plot is not None:
        return render_plot(plot, budget)
    text = _find_text(data, budget)
    if text is not None and text.text:
        return [text]
    if data.get("image/svg+xml"):
        return _render_svg(clean_text(join_lines(data["image/svg+xml"])), budget)
    return _render_plain_or_html(data, budget)


def render_display(
    data: Mapping[str, Any], metadata: Mapping[str, Any], budget: Budget
) -> list[Piece]:
    """Render a display: its MIME bundle, and the note on its image in the metadata.

    Args:
        data: MIME types and values.
        metadata: Their metadata.
        budget: The limits of the result.
    """
    pieces = render_mime_bundle(data, budget)
    if pieces and isinstance(pieces[0].block, Image):
        note = metadata.get(matplotlib_figures.NOTE)
        notes = (note, *pieces[0].notes) if note else pieces[0].notes
        figure = metadata.get(matplotlib_figures.FIGURE)
        pieces[0] = structs.replace(pieces[0], notes=notes, figure=figure)
    return pieces


def render_undrawn(
    figure: Any, format_: Any, budget: Budget, restore: Callable[[], Any] | None = None
) -> Piece:
    """Render a matplotlib figure as the text that stands for it until it is drawn.

    Args:
        figure: A value that `matplotlib_figures.draw_figure` draws.
        format_: IPython's ``shell.display_formatter.format``.
        budget: The limits of the result.
        restore: Returns the figure to draw, if this one may have changed until then.
    """
    find = restore or (lambda: figure)  # a copy needs the figure no more

    def draw() -> list[Piece]:
        drawn = matplotlib_figures.draw_figure(find(), format_, budget.picture_side)
        return render_display(*drawn, budget)

    def explain(error: BaseException) -> list[Piece]:
        return [Piece(Text(f"[The figure cannot be drawn: {describe_error(error)}.]"))]

    line = describe_figure(figure) or "a figure"
    return Piece(
        Text(f"[Not drawn: {line}.]"),
        draw=lambda: guard(draw, recover=explain),
        figure=matplotlib_figures.refer_to(figure) if restore is None else None,
    )


def _render_plain_or_html(data: Mapping[str, Any], budget: Budget) -> list[Piece]:
    html = join_lines(data.get("text/html") or "")
    plain = _find_plain_text(data)
    if plain is not None and plain.text and not _PICTURE_IN_HTML.search(html):
        return [plain]
    blocks = _render_html(html, budget) if html else []
    if blocks or not data:
        return blocks
    for mime_type, value in data.items():
        if mime_type.startswith("text/") and mime_type not in _TEXTS and value:
            return [make_text_piece(join_lines(value))]
    poor = _find_other_text(data)
    kinds = ", ".join(kind for kind in data if kind != "text/plain") or "text/plain"
    return [poor or Piece(Text(f"[a display without text: {kinds}]"))]


def render_plot(plot: detect.Plot, budget: Budget) -> list[Piece]:
    """Render a plot: its picture or its specification, and links to the whole."""
    note = plot.note
    pieces: list[Piece] = []
    if plot.draw is not None:
        try:
            pieces = render_encoded_image(plot.draw(budget.picture_side), budget)
        except NotDrawn as error:
            note = str(error)
    if not pieces:
        text = plot.summarize(min(MAX_SPECIFICATION, max(budget.chars - len(note), 0)))
        heading = f"[{plot.kind}, not drawn here: {note}. Its contents:]"
        pieces = [Piece(Text(f"{heading}\n{clean_text(text)}"))]
    return [*pieces, *map(Piece, budget.keep(plot.original))]


def _find_text(data: Mapping[str, Any], budget: Budget) -> Piece | None:
    if data.get("text/markdown"):
        return make_text_piece(join_lines(data["text/markdown"]), ".md", "text/markdown")
    if "application/json" in data:
        return render_json(data["application/json"], budget)
    latex = join_lines(data.get("text/latex") or "")
    if not latex or latex.startswith(_PYGMENTS) or (len(data) > 1 and _TABULAR.search(latex)):
        return None
    plain = _find_plain_text(data)
    beside = plain is not None and 0 < len(plain.text) <= _MAX_BESIDE
    return make_text_piece(
        f"{latex}\n\n{plain.text}" if plain and beside else latex, ".tex", "application/x-latex"
    )


def _find_plain_text(data: Mapping[str, Any]) -> Piece | None:
    text = drop_addresses(join_lines(data.get("text/plain") or ""))
    # The name of a display is better than nothing.
    return None if len(data) > 1 and _ONLY_A_NAME.fullmatch(text) else make_text_piece(text)


def _render_svg(source: str, budget: Budget) -> list[Piece]:
    from mcp_notebook.kernel.results.plots import svg  # noqa: PLC0415 - loads an XML parser

    try:
        png = svg.draw_svg(source, budget.picture_side)
        pieces = render_encoded_image(png, budget)
    except NotDrawn as error:
        size = min(MAX_SPECIFICATION, budget.chars)
        if len(source) <= size:
            return [Piece(Text(source))]
        texts = svg.extract_texts(source) or "(none)"
        note = (
            f"[an SVG picture of {len(source):,} characters, not drawn here: {error}. Its texts:]"
        )
        pieces = [Piece(Text(f"{note}\n{cut_text(clean_text(texts), size)}"))]
    encoded = source.encode()
    form = FileFormat(".svg", "image/svg+xml", lambda: source, len(encoded))
    original = Original("picture", "The SVG of a picture", (form,), len(encoded))
    return [*pieces, *map(Piece, budget.keep(original))]


def _find_other_text(data: Mapping[str, Any]) -> Piece | None:
    for mime_type, value in data.items():
        if mime_type.endswith("+json") and not mime_type.startswith(_WIDGET):
            text = compact_json(value, MAX_SPECIFICATION)
            is_partial = " left out" in text or " more of " in text
            text = f"[{mime_type}, which only a notebook can show:]\n{text}"
            return Piece(Text(text), describe_whole_json(value), is_partial=is_partial)
    if data.get("application/javascript"):
        return Piece(Text("[JavaScript, which only a notebook runs]"))
    plain = _find_plain_text(data)
    return plain if plain is not None and plain.text else None


def _render_html(html: str, budget: Budget) -> list[Piece]:
    from mcp_notebook.kernel.results.html.to_markdown import convert_html  # noqa: PLC0415 - loads BeautifulSoup

    content = convert_html(html, budget.chars)
    blocks: list[Piece] = []
    if is_sendable(content.text) or content.converted_chars < content.markup_chars:
        blocks.append(_make_html_piece(html, content))
    for address in content.data_uris[:MAX_MEDIA]:
        kind, _, data = address.removeprefix("data:").partition(",")
        mime_type = kind.partition(";")[0].lower()
        if mime_type == "image/svg+xml":
            blocks += _render_svg(_decode_svg(kind, data), budget)
        elif not kind.endswith(";base64"):
            continue
        elif mime_type.startswith("audio/"):
            blocks += audio.render_audio(Audio(decode_bytes(data), mime_type), budget)
        elif mime_type in PICTURES:
            blocks += render_encoded_image(data, budget)
    return blocks


def _decode_svg(kind: str, data: str) -> str:
    content = decode_bytes(data) if kind.endswith(";base64") else unquote_to_bytes(unescape(data))
    return clean_text(content.decode("utf-8", "replace"))


def _make_html_piece(html: str, content: "HtmlContent") -> Piece:
    text = clean_text(content.text)
    if content.converted_chars < content.markup_chars:
        left_out = content.markup_chars - content.converted_chars
        note = f"[... {left_out:,} of {content.markup_chars:,} characters of HTML left out ...]"
        text = f"{text}\n{note}".lstrip()
    dropped = len(html) - content.markup_chars > MUCH_DROPPED
    is_partial = content.converted_chars < content.markup_chars or dropped
    return Piece(Text(text), _describe_page(html), is_partial=is_partial)


def _describe_page(html: str) -> Original:
    return Original(
        name="page",
        title=f"The whole HTML: {len(html):,} characters",
        formats=(FileFormat(".html", "text/html", lambda: clean_text(html)),),
        cost=sys.getsizeof(html),
        kind="page",
    )
