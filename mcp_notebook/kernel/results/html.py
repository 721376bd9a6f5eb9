"""HTML as Markdown for a model: what a reader would see of it, and the media that it carries.

Runs in the user's kernel, on the thread of the call. Imported late: it loads BeautifulSoup and
markdownify. Whatever the HTML is, it takes bounded time and memory, and never raises: scripts,
styles, drawings and media are taken out of the text by searching it once, and only then, of what is
left, the beginning is parsed. What else a display offers is `kernel.results.displays`' business.
"""

# ruff: noqa: ARG002 - the parameters of the converter's methods are markdownify's

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from mcp_notebook.kernel.safe.text import is_sendable

MARKUP_PER_CHAR = 4
"""Characters of markup that are parsed for each character of the result that there is room for."""
MAX_HTML = 10_000_000
"""Characters that are searched for what a reader sees."""
MAX_MARKUP = 400_000
"""Characters of markup that are parsed at most: the parser takes seconds for a million."""
MAX_DEPTH = 60
"""Elements within each other; what is deeper is text. Python's limit of recursion is far above."""
MAX_SPAN = 20
"""Columns that one cell may take."""
_MAX_ATTRIBUTE = 2_000
_MAX_ADDRESS = 500

_SILENT = ("script", "style", "template", "noscript", "head", "object", "canvas")
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_MEDIA = re.compile(
    r"""\bsrc\s*=\s*(?:"(data:[^"]*)"|'(data:[^']*)'|(data:[^\s>]+))""", re.IGNORECASE
)
_LONG_ATTRIBUTE = re.compile(
    rf"""=\s*(?:"[^"<>]{{{_MAX_ATTRIBUTE},}}"|'[^'<>]{{{_MAX_ATTRIBUTE},}}')"""
)
_TAG = re.compile(r"<[^<>]*>")
_LONELY = re.compile(r"<(?=[^<>]*(?:<|\Z))")
_MAX_LONELY = 100
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_GAPS = re.compile(r"\n{3,}")
_TABLE_PARTS = frozenset({"thead", "tbody", "tfoot", "tr", "td", "th", "colgroup"})

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
_MAX_UNCLOSED = 1_000
"""Of more, none is moved: each takes time by the length of what follows."""


@dataclass(frozen=True)
class HtmlContent:
    """What is said by a document."""

    text: str
    """Markdown."""
    data_uris: tuple[str, ...]
    """The ``data:`` addresses of pictures and sounds, in order."""
    markup_chars: int
    """Characters of markup without scripts, styles, drawings and media."""
    converted_chars: int
    """Characters of it that `text` says; less than `markup`: the rest was left out."""


def convert_html(html: str, max_chars: int) -> HtmlContent:
    """Take the text out of HTML, and the media that it carries in itself.

    Args:
        html: A document or a part of one, of any size, correct or not.
        max_chars: Characters of text that there is room for.
    """
    markup, media = _without_media(_without_silent(html[:MAX_HTML]))
    whole = len(markup) + max(len(html) - MAX_HTML, 0)
    read = _cut_at_tag(markup, min(MAX_MARKUP, max(MARKUP_PER_CHAR * max_chars, 1_000)))
    try:
        text = _markdown(_without_lonely(read))
    except Exception:  # noqa: BLE001 - the parser refuses some markup, in more than one way
        text = unescape(_TAG.sub(" ", read))
    return HtmlContent(_tidy(text), tuple(media), whole, len(read))


# -- before it is parsed: each character is looked at a few times, whatever they are --------------


def _without_silent(html: str) -> str:
    """Take out what no reader sees; of a drawing, all but its texts."""
    html = _replaced(html, "<!--", "-->", lambda _: "")
    html = _replaced(html, "<?", ">", lambda _: "")
    html = _replaced(html, "<![", ">", lambda _: "")
    for name in _SILENT:
        html = _replaced(html, f"<{name}", f"</{name}", lambda _: "", tag=True)
    return _replaced(html, "<svg", "</svg", _drawing_text, tag=True)


def _replaced(
    html: str, start: str, end: str, replace: Callable[[str], str], *, tag: bool = False
) -> str:
    """Replace everything from a start to the next end, or to the end of the document."""
    found = list(_spans(html, start, end, tag=tag))
    if not found:
        return html
    parts, last = [], 0
    for first, after in found:
        parts += [html[last:first], replace(html[first:after])]
        last = after
    return "".join([*parts, html[last:]])


def _spans(html: str, start: str, end: str, *, tag: bool) -> Iterator[tuple[int, int]]:
    # Not one pattern from start to end: where ends are missing that would be quadratic.
    boundary = r"(?=[\s/>])" if tag else ""
    starts = re.compile(re.escape(start) + boundary, re.IGNORECASE)
    ends = re.compile(re.escape(end) + (r"\s*>" if tag else ""), re.IGNORECASE)
    position = 0
    while (opened := starts.search(html, position)) is not None:
        closed = ends.search(html, opened.end())
        position = len(html) if closed is None else closed.end()
        yield opened.start(), position


def _drawing_text(svg: str) -> str:
    said = (
        _TAG.sub(" ", svg[first:after]).partition("</")[0]
        for first, after in _spans(svg, "<text", "</text", tag=True)
    )
    return " ".join(filter(is_sendable, said))


def _without_media(html: str) -> tuple[str, list[str]]:
    media: list[str] = []

    def taken(match: re.Match[str]) -> str:
        media.append(match[1] or match[2] or match[3])
        return 'src=""'

    return _LONG_ATTRIBUTE.sub('=""', _MEDIA.sub(taken, html)), media


def _without_lonely(markup: str) -> str:
    """Make text of tags that do not end, if they are many: the parser would take for ever."""
    # A few are left as they are: the attributes of good HTML may have a bare "<".
    many = sum(1 for _ in _LONELY.finditer(markup)) > _MAX_LONELY
    return _LONELY.sub("&lt;", markup) if many else markup


def _cut_at_tag(markup: str, size: int) -> str:
    if len(markup) <= size:
        return markup
    end = markup.rfind("<", size - _MAX_ATTRIBUTE, size)
    return markup[: end if end > 0 else size]


# -- parsed ----------------------------------------------------------------------------------------


def _markdown(markup: str) -> str:
    if "<" not in markup:  # BeautifulSoup would wonder whether it is the name of a file
        return unescape(markup)
    soup = BeautifulSoup(markup, "html.parser")
    _close(soup)
    _flatten(soup)
    hidden = [tag.extract() for tag in soup.find_all(_is_hidden)]
    if not is_sendable(soup.get_text()):
        for tag in hidden:
            soup.append(tag)
    for table in soup.find_all("table"):
        if table.find("table") is not None:
            _lay_out(table)
    return str(_Converter().convert_soup(soup))


def _is_hidden(tag: Tag) -> bool:
    """Tell whether a tag waits for a style sheet to show it: there is a text in its place, then."""
    return (
        tag.name == "input"
        or tag.has_attr("hidden")
        or _HIDDEN.search(str(tag.get("style") or "")) is not None
    )


def _close(soup: BeautifulSoup) -> None:
    """End the items and cells that a next one ends in a browser, but not for the parser."""
    inner = [tag for tag in soup.find_all(list(_ENDED_BY_NEXT)) if _is_in_last(tag)]
    if len(inner) > _MAX_UNCLOSED:
        return
    for tag in inner:
        while _is_in_last(tag) and tag.parent is not None:
            tag.parent.insert_after(tag)


def _is_in_last(tag: Tag) -> bool:
    return tag.parent is not None and tag.parent.name in _ENDED_BY_NEXT[tag.name]


def _flatten(soup: BeautifulSoup) -> None:
    """Make text of what is nested too deep; without recursion, as all of what is done before."""
    waiting: list[tuple[Tag, int]] = [(soup, 0)]
    while waiting:
        tag, depth = waiting.pop()
        if depth >= MAX_DEPTH:
            tag.string = tag.get_text(" ", strip=True)
            continue
        waiting += [(child, depth + 1) for child in tag.children if isinstance(child, Tag)]


def _lay_out(table: Tag) -> None:
    """Make blocks of a table that only places other tables on the page."""
    waiting = [table]
    while waiting:
        for child in waiting.pop().children:
            if isinstance(child, Tag) and child.name != "table":
                child.name = "div" if child.name in _TABLE_PARTS else child.name
                waiting.append(child)
    table.name = "div"


class _Converter(MarkdownConverter):
    """Markdown for a model: nothing escaped but what would break a table, and linear in time.

    markdownify's own rows and list items look at all others of their table or list.
    """

    def __init__(self) -> None:
        super().__init__(
            heading_style="ATX", autolinks=False, escape_asterisks=False, escape_underscores=False
        )
        self._numbers: dict[int, int] = {}
        """How many items the numbered lists have so far, by the lists' ids."""

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        address = str(el.get("href") or "")
        scheme = address.partition(":")[0].lower()
        if scheme not in ("http", "https", "mailto") or len(address) > _MAX_ADDRESS:
            return text
        if text.strip() == address:
            return address
        return f"[{text.strip()}]({address})" if text.strip() else ""

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # Where it was carried in the document, it follows as a picture.
        shown = str(el.get("alt") or el.get("src") or "")
        return f"[picture: {shown[:_MAX_ADDRESS]}]" if el.get("src") else ""

    def _nothing(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return ""

    # What they show is told by `kernel.results.html_media`.
    convert_iframe = convert_video = convert_audio = _nothing

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        bullet = "- "
        if el.parent is not None and el.parent.name == "ol":
            number = self._numbers.get(id(el.parent), 0) + 1
            self._numbers[id(el.parent)] = number
            bullet = f"{number}. "
        # A list within: its last item, or the next item of a list that closes none.
        gap = "\n" if el.parent is not None and el.parent.name == "li" else ""
        said = text.strip().replace("\n", "\n  ")
        return f"{gap}{bullet}{said}\n" if said else "\n"

    def convert_b(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if parent_tags & {"b", "strong"}:
            return text
        return str(MarkdownConverter.convert_b(self, el, text, parent_tags))  # type: ignore[attr-defined]

    convert_strong = convert_b

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        wide = str(el.get("colspan") or "1")
        columns = min(int(wide), MAX_SPAN) if wide.isdecimal() and len(wide) < 9 else 1  # noqa: PLR2004 - no number of columns is longer
        return f" {' '.join(text.split())} ".replace("|", "\\|") + "|" * max(columns, 1)

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"|{text}\n" if text.strip() else ""

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
    convert_textarea = MarkdownConverter.convert_pre  # type: ignore[attr-defined]


def _tidy(text: str) -> str:
    lines = text.split("\n")
    fenced = False
    for index, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and len(line) > len(line.lstrip()):
            indent = len(line) - len(line.lstrip())
            lines[index] = line[:indent] + _SPACES.sub(" ", line[indent:]).rstrip()
        elif not fenced:
            lines[index] = _SPACES.sub(" ", line).rstrip()
    return _GAPS.sub("\n\n", "\n".join(lines)).strip()
