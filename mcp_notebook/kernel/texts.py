"""Text for a model: cleaned of what no client can take, cut to size, and taken out of HTML.

Runs in the user's kernel, on the thread of the call. Pure functions; what a value becomes is
`kernel.results`' business.
"""

import re
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from mcp_notebook.kernel.patience import TookTooLong, bounded

MAX_REPR = 2_000
"""Characters of the repr of an object that is part of a larger value."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")
_SPACES = re.compile(r"[ \t\r\f\v]+")


def clean(text: str) -> str:
    """Remove ANSI codes, and replace control characters and lone surrogates."""
    # str.__str__ turns a str of a subclass, whose methods may do anything, into a plain one.
    text = str.__str__(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _UNSENDABLE.sub("\ufffd", text)


def clean_print(text: str) -> str:
    """Clean what was printed, and keep of each line what a terminal would still show.

    A progress bar prints one line hundreds of times, with a carriage return in between.
    """
    text = clean(text)
    if "\r" not in text:
        return text
    return _OVERWRITTEN.sub("", text.replace("\r\n", "\n")).replace("\r", "")


def is_sendable(text: str) -> bool:
    """Tell whether a text has anything to say: models' APIs refuse blocks of white space."""
    return bool(text.strip())


def cut(text: str, size: int) -> str:
    """Cut a text in the middle to at most `size` characters, saying what was cut."""
    if len(text) <= size:
        return text
    marker = f"\n[... {len(text) - size:,} of {len(text):,} characters left out ...]\n"
    keep = size - len(marker)
    if keep < len(marker):
        return text[: max(size, 0)]
    marker = f"\n[... {len(text) - keep:,} of {len(text):,} characters left out ...]\n"
    keep = size - len(marker)
    tail = keep // 2
    return text[: keep - tail] + marker + text[len(text) - tail :]


def fair_share(lengths: Sequence[int], total: int) -> int:
    """Return the length to which all texts must be cut so that together they keep to `total`."""
    for index, length in enumerate(ordered := sorted(lengths)):
        share = total // (len(ordered) - index)
        if length > share:
            return share
        total -= length
    return max(ordered, default=0)


def safe_repr(value: Any, size: int = MAX_REPR) -> str:
    """Return an object's repr, bounded in size and time; a sentence if it has none that works."""
    try:
        return cut(clean(bounded(repr, value)), size)
    except KeyboardInterrupt:
        raise
    except TookTooLong as error:
        return slow_text(value, error)
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything
        name = type_name(value)
        return f"<an object of type {name} whose repr failed: {safe_message(error)}>"


def slow_text(value: Any, error: TookTooLong) -> str:
    """Return the sentence for an object whose code took too long."""
    return f"[an object of type {type_name(value)} {error}]"


def type_name(value: Any) -> str:
    """Return the name of a value's type, without running the code of either."""
    return clean(type.__dict__["__name__"].__get__(type(value)))


def safe_message(error: BaseException) -> str:
    """Return an exception's type and message on one line, whatever its ``__str__`` does."""
    name = type_name(error)
    try:
        text = cut(" ".join(clean(bounded(str, error)).split()), MAX_REPR)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the user's code may raise anything
        return f"{name} (whose message cannot be read)"
    return f"{name}: {text}" if text else name


def is_instance(value: Any, path: str) -> bool:
    """Tell whether a value is of a type of a library, without importing the library.

    Args:
        value: Anything.
        path: Where the type is found: ``"pandas.DataFrame"``.
    """
    module, _, name = path.rpartition(".")
    wanted = getattr(sys.modules.get(module), name, None)
    # A module that another thread is importing just now has no such name yet.
    return isinstance(wanted, type) and isinstance(value, wanted)


def html_text(html: str) -> tuple[str, list[str]]:
    """Take the text out of HTML, and the media that it carries in itself.

    Returns:
        The text, tables with ``|`` between cells; and the ``data:`` addresses of pictures and
        sounds, in order.
    """
    parser = _TextParser()
    parser.feed(html)
    parser.close()
    return parser.text(), parser.media


class _TextParser(HTMLParser):
    """Collects the text of a document that is shown to its reader."""

    _SILENT = frozenset({"script", "style", "head", "template", "noscript", "audio", "video"})
    _BREAKS = frozenset(
        {
            *("address", "article", "blockquote", "br", "caption", "dd", "div", "dl", "dt"),
            *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main"),
            *("nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead"),
            *("tr", "ul"),
        }
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.media: list[str] = []
        self._parts: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        source = values.get("src") or ""
        if tag in {"img", "audio", "source"} and source.startswith("data:"):
            self.media.append(source)
        elif tag == "img" and not self._silent:
            self._parts.append(f"[picture: {values.get('alt') or source}]")
        if tag in self._SILENT:
            self._silent.append(tag)
        elif tag in {"td", "th"}:
            self._parts.append(" | ")
        elif tag in self._BREAKS:
            self._parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        elif tag in self._BREAKS and tag != "br":
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._parts.append(_SPACES.sub(" ", data.replace("\n", " ")))

    def text(self) -> str:
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._parts).split("\n"))
        return "\n".join(line.removeprefix("| ") for line in lines if line.strip("|- "))
