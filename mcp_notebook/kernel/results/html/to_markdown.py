"""Converts HTML to Markdown for a model: its visible text and its embedded media.

Runs in the user's kernel, on the thread of the call. Imported late, since it loads BeautifulSoup
and markdownify. Whatever the HTML is, the conversion takes bounded time and memory and does not
raise: `CLEANING_STEPS` remove scripts, styles, drawings and media by searching the text, and only
the beginning of what is left is parsed. BeautifulSoup's own parser takes quadratic time for
elements that are never closed, and does not close them as browsers do: `HtmlTree` does.
"""

import html as entities
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter
from msgspec import Struct

from mcp_notebook.kernel.safe.text import is_sendable

# ruff: noqa: ARG002 - markdownify calls the methods of the converter with these parameters


MARKUP_PER_CHAR = 4
"""Characters of markup to parse per character of the result."""
MAX_HTML = 10_000_000
"""Maximum characters of a document; the rest is ignored."""
MAX_MARKUP = 400_000
"""Maximum characters to parse: the parser takes seconds for a million."""
MAX_SPAN = 20
"""Maximum columns that a cell may span."""
_MAX_ATTRIBUTE = 2_000
_MAX_ADDRESS = 500
_MEDIA = {
    "video": "a video",
    "audio": "a sound",
    "iframe": "a page within the page",
    "embed": "something embedded",
}

_SILENT_ELEMENTS = ("script", "style", "template", "noscript", "head", "object", "canvas")
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_DATA_SOURCE = re.compile(
    r"""\bsrc\s*=\s*(?:"(data:[^"]*)"|'(data:[^']*)'|(data:[^\s>]+))""", re.IGNORECASE
)
_LONG_ATTRIBUTE = re.compile(
    rf"""=\s*(?:"[^"<>]{{{_MAX_ATTRIBUTE},}}"|'[^'<>]{{{_MAX_ATTRIBUTE},}}')"""
)
_HUGE_REFERENCE = re.compile(r"&(?=#(?:[0-9]{8}|x[0-9a-f]{8}))", re.IGNORECASE)
"""The beginning of a numeric character reference that is too long for `int`."""
_TAG = re.compile(r"<[^<>]*>")
_UNCLOSED_TAG = re.compile(r"<(?=[^<>]*(?:<|\Z))")
_MAX_UNCLOSED_TAGS = 100
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_GAPS = re.compile(r"\n{3,}")
_TABLE_PARTS = frozenset({"thead", "tbody", "tfoot", "tr", "td", "th", "colgroup"})


class HtmlContent(Struct, frozen=True):
    """The visible content of a document."""

    text: str
    """Markdown."""
    data_uris: tuple[str, ...]
    """The ``data:`` URIs of its pictures and sounds, in order."""
    markup_chars: int
    """Length of its markup without scripts, styles, drawings and media."""
    converted_chars: int
    """Length of the markup that `text` covers; the rest is left out."""


def convert_html(html: str, max_chars: int) -> HtmlContent:
    """Convert HTML to Markdown, and extract the media that are embedded in it.

    Args:
        html: A document or part of one, of any size, well-formed or not.
        max_chars: Maximum characters of the result.
    """
    data_uris: list[str] = []
    markup = html[:MAX_HTML]
    for clean in CLEANING_STEPS:
        markup = clean(markup, data_uris)
    markup_chars = len(markup) + max(len(html) - MAX_HTML, 0)
    beginning = _cut_at_tag(markup, min(MAX_MARKUP, max(MARKUP_PER_CHAR * max_chars, 1_000)))
    try:
        text = _to_markdown(_HUGE_REFERENCE.sub("&amp;", _escape_unclosed_tags(beginning)))
    except Exception:  # noqa: BLE001 - the parser refuses some markup, in more than one way
        text = _unescape(_TAG.sub(" ", beginning))
    return HtmlContent(_tidy_spaces(text), tuple(data_uris), markup_chars, len(beginning))


# -- before parsing: each step is linear in the length of any document -----------------------------


def remove_comments(html: str, _data_uris: list[str]) -> str:
    """Remove comments, processing instructions and declarations."""
    html = _replace_spans(html, "<!--", "-->", lambda _: "")
    html = _replace_spans(html, "<?", ">", lambda _: "")
    return _replace_spans(html, "<![", ">", lambda _: "")


def remove_silent_elements(html: str, _data_uris: list[str]) -> str:
    """Remove scripts, styles and other invisible elements."""
    for name in _SILENT_ELEMENTS:
        html = _replace_spans(html, f"<{name}", f"</{name}", lambda _: "", is_element=True)
    return html


def reduce_drawings(html: str, _data_uris: list[str]) -> str:
    """Reduce each SVG to its texts."""
    return _replace_spans(html, "<svg", "</svg", _extract_svg_texts, is_element=True)


def extract_data_uris(html: str, data_uris: list[str]) -> str:
    """Move the ``data:`` URIs of pictures and sounds into the list."""

    def extract(match: re.Match[str]) -> str:
        data_uris.append(match[1] or match[2] or match[3])
        return 'src=""'

    return _DATA_SOURCE.sub(extract, html)


def empty_long_attributes(html: str, _data_uris: list[str]) -> str:
    """Empty attributes that are too long for a reader."""
    return _LONG_ATTRIBUTE.sub('=""', html)


CLEANING_STEPS: tuple[Callable[[str, list[str]], str], ...] = (
    # Before the elements: a comment may contain the start of one.
    remove_comments,
    # Before drawings: the text of a script may contain the start of one.
    remove_silent_elements,
    # Before the data URIs: a picture within a drawing is not one of the document's.
    reduce_drawings,
    # Before long attributes are emptied: most data URIs are among them.
    extract_data_uris,
    # Last: what is left is the markup whose length counts.
    empty_long_attributes,
)


def _replace_spans(
    html: str, start: str, end: str, replace: Callable[[str], str], *, is_element: bool = False
) -> str:
    """Replace everything from a start to the next end, or to the end of the document."""
    spans = list(_find_spans(html, start, end, is_element=is_element))
    if not spans:
        return html
    parts, position = [], 0
    for first, after in spans:
        parts += [html[position:first], replace(html[first:after])]
        position = after
    return "".join([*parts, html[position:]])


def _find_spans(html: str, start: str, end: str, *, is_element: bool) -> Iterator[tuple[int, int]]:
    # One pattern for start and end would take quadratic time if ends are missing.
    boundary = r"(?=[\s/>])" if is_element else ""
    starts = re.compile(re.escape(start) + boundary, re.IGNORECASE)
    ends = re.compile(re.escape(end) + (r"\s*>" if is_element else ""), re.IGNORECASE)
    position = 0
    while (opening := starts.search(html, position)) is not None:
        closing = ends.search(html, opening.end())
        position = len(html) if closing is None else closing.end()
        yield opening.start(), position


def _extract_svg_texts(svg: str) -> str:
    texts = (
        _TAG.sub(" ", svg[first:after]).partition("</")[0]
        for first, after in _find_spans(svg, "<text", "</text", is_element=True)
    )
    return " ".join(filter(is_sendable, texts))


def _cut_at_tag(markup: str, size: int) -> str:
    if len(markup) <= size:
        return markup
    end = markup.rfind("<", size - _MAX_ATTRIBUTE, size)
    return markup[: end if end > 0 else size]


def _escape_unclosed_tags(markup: str) -> str:
    """Escape unclosed tags if there are many: the parser would take forever."""
    # A few stay, since attributes in valid HTML may contain a bare "<".
    has_many = sum(1 for _ in _UNCLOSED_TAG.finditer(markup)) > _MAX_UNCLOSED_TAGS
    return _UNCLOSED_TAG.sub("&lt;", markup) if has_many else markup


# -- parsing ---------------------------------------------------------------------------------------


def _to_markdown(markup: str) -> str:
    if "<" not in markup:  # BeautifulSoup would warn that it looks like a file name
        return _unescape(markup)
    soup = HtmlTree(markup)
    hidden = soup.find_all(_is_hidden)
    _extract(hidden)
    if not is_sendable(soup.get_text()):
        for tag in hidden:
            soup.append(tag)
    for table in soup.find_all("table"):
        if table.find("table") is not None:
            _replace_layout_table(table)
    return str(_Converter().convert_soup(soup))


def _unescape(text: str) -> str:
    return entities.unescape(_HUGE_REFERENCE.sub("&amp;", text))


def _is_hidden(tag: Tag) -> bool:
    """Return whether a tag is only visible with a style sheet, and has a text fallback."""
    return (
        tag.name == "input"
        or tag.has_attr("hidden")
        or _HIDDEN.search(str(tag.get("style") or "")) is not None
    )


def _extract(tags: Sequence[Tag]) -> None:
    """Remove tags from a document, all of one parent at once, in linear time."""
    out = set(map(id, tags))
    for parent in {id(tag.parent): tag.parent for tag in tags}.values():
        if parent is not None:
            others = [child for child in parent.contents if id(child) not in out]
            for child in list(parent.contents):
                child.extract()
            parent.extend(others)


def _replace_layout_table(table: Tag) -> None:
    """Turn a table that only lays out other tables into blocks."""
    waiting = [table]
    while waiting:
        for child in waiting.pop().children:
            if isinstance(child, Tag) and child.name != "table":
                child.name = "div" if child.name in _TABLE_PARTS else child.name
                waiting.append(child)
    table.name = "div"


class _Converter(MarkdownConverter):
    """Writes Markdown for a model, in linear time, and escapes only what would break a table.

    The methods of markdownify are quadratic in the rows of a table and the items of a list.
    """

    def __init__(self) -> None:
        super().__init__(
            heading_style="ATX", autolinks=False, escape_asterisks=False, escape_underscores=False
        )
        self._numbers: dict[int, int] = {}
        """Number of items so far in each numbered list, by the id of the list."""

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        address = str(el.get("href") or "")
        scheme = address.partition(":")[0].lower()
        if scheme not in ("http", "https", "mailto") or len(address) > _MAX_ADDRESS:
            return text
        if text.strip() == address:
            return address
        return f"[{text.strip()}]({address})" if text.strip() else ""

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # An embedded picture becomes a block of its own.
        name = str(el.get("alt") or el.get("src") or "")
        return f"[picture: {name[:_MAX_ADDRESS]}]" if el.get("src") else ""

    def _name_medium(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        inner = el.find("source")
        source = el.get("src") or (inner.get("src") if isinstance(inner, Tag) else "")
        if source:
            return f"[{_MEDIA[el.name]}, which is not fetched: {str(source)[:_MAX_ADDRESS]}]"
        # An embedded sound becomes a block of its own.
        return "" if el.name == "audio" else f"[{_MEDIA[el.name]}]"

    convert_iframe = convert_video = convert_audio = convert_embed = _name_medium

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        bullet = "- "
        if el.parent is not None and el.parent.name == "ol":
            number = self._numbers.get(id(el.parent), 0) + 1
            self._numbers[id(el.parent)] = number
            bullet = f"{number}. "
        # In a nested list: its last item, or the next item of a list that closes none.
        gap = "\n" if el.parent is not None and el.parent.name == "li" else ""
        content = text.strip().replace("\n", "\n  ")
        return f"{gap}{bullet}{content}\n" if content else "\n"

    def convert_b(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if parent_tags & {"b", "strong"}:
            return text
        return str(MarkdownConverter.convert_b(self, el, text, parent_tags))  # type: ignore[attr-defined]

    convert_strong = convert_b

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        span = str(el.get("colspan") or "1")
        columns = min(int(span), MAX_SPAN) if span.isdecimal() and len(span) < 9 else 1  # noqa: PLR2004 - no number of columns is longer
        return f" {' '.join(text.split())} ".replace("|", "\\|") + "|" * max(columns, 1)

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"|{text}\n" if text.strip() else ""

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        indented = text.lstrip(" \n")
        start = text.rfind("\n", 0, len(text) - len(indented)) + 1
        code = text[start:].rstrip(" \n")
        return f"\n\n```\n{code}\n```\n\n" if text else ""

    def convert_table(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        before, bar, rows = text.strip().partition("|")
        first, _, rest = rows.partition("\n")
        if not bar:
            return f"\n\n{before}\n\n"
        columns = first.replace("\\|", "").count("|")
        row = el.find("tr")
        has_head = isinstance(row, Tag) and row.find("th") is not None
        head = f"|{first}\n" if has_head else "|" + " |" * columns + "\n"
        body = rest if has_head else f"|{first}\n{rest}"
        return f"\n\n{before}{head}|{'---|' * columns}\n{body}\n\n"

    def convert_caption(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return " ".join(text.replace("|", "/").split()) + "\n\n"

    def convert_option(self, el: Tag, text: str, parent_tags: set[str]) -> Any:
        return f" {text.strip()} "

    convert_summary = MarkdownConverter.convert_div  # type: ignore[attr-defined]
    convert_textarea = convert_pre


def _tidy_spaces(text: str) -> str:
    lines = text.split("\n")
    is_fenced = False
    for index, line in enumerate(lines):
        is_fenced ^= line.lstrip().startswith("```")
        if not is_fenced and len(line) > len(line.lstrip()):
            indent = len(line) - len(line.lstrip())
            lines[index] = line[:indent] + _SPACES.sub(" ", line[indent:]).rstrip()
        elif not is_fenced:
            lines[index] = _SPACES.sub(" ", line).rstrip()
    return _GAPS.sub("\n\n", "\n".join(lines)).strip()


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
"""White space that is slow in markdownify, whose patterns try each start of a gap."""


class HtmlTree(BeautifulSoup):
    """A document with at most `MAX_DEPTH` levels of nesting.

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
        # The parser would search a list of these at each end tag.
        super().handle_endtag(name)
        return None

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        """End the innermost element of this name and everything in it."""
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
        """Add the pending text."""
        if self.current_data:
            self.current_data = [_LONG_GAP.sub(r"\1", "".join(self.current_data))]
        super().endData(*args)

    def _end_items(self, name: str) -> None:
        """End the items or cells that the next one closes implicitly, as browsers do."""
        while self.currentTag is not None and self.currentTag.name in _ENDED_BY_NEXT.get(name, ()):
            super().handle_endtag(self.currentTag.name)

    def _drop(self, name: str) -> None:
        self.handle_data(" ")
        self._dropped.append(name)
        self._dropped_counts[name] += 1
