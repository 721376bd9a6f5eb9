"""Reads the tags of HTML of any size, well-formed or not, in one pass.

Runs in the user's kernel, on the thread of the call. Pure. Python's own parser searches to the end
of the document for each unclosed comment or tag; here each character is read a few times at most,
as in browsers. `media` and `plots.bokeh_folium` use the tags; `to_markdown` makes Markdown.
"""

import html
import re
from collections.abc import Collection, Iterator

# Each alternative also matches what never ends, up to the end of the document; so no part of it is
# searched twice. Quotes count in the value of an attribute only; a quote without a partner is text.
_MARKUP = re.compile(
    r"""
    <!--.*?(?:-->|\Z)
    | <(script|style)(?=[\s/>]).*?(?:</\1\s*>|\Z)
    | <(/?[a-z][^\s/>]*+)                                               # its name
      ((?:[^>"'=]++ | =\s*+(?:"[^"]*+"|'[^']*+') | ["'=])*+)(>|\Z)      # attributes, and its end
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(
    r"""([^\s/>=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?""", re.DOTALL
)
_HUGE_REFERENCE = re.compile(r"&(?=#(?:[0-9]{8}|x[0-9a-f]{8}))", re.IGNORECASE)


def iterate_tags(markup: str, names: Collection[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the tags of some elements in order, each with its attributes.

    Comments, scripts, styles, attributes of other tags and unclosed tags are skipped.

    Args:
        markup: A document or part of one.
        names: Lower-case names; ``"/video"`` is the end tag of a video.
    """
    for match in _MARKUP.finditer(markup):
        if match[4] and (name := match[2].lower()) in names:
            yield name, _read_attributes(match[3])


def _read_attributes(text: str) -> dict[str, str]:
    return {
        match[1].lower(): unescape(match[2] or match[3] or match[4] or "")
        for match in _ATTRIBUTE.finditer(text)
    }


def escape_huge_references(markup: str) -> str:
    """Escape numeric character references that are too long for `int`."""
    return _HUGE_REFERENCE.sub("&amp;", markup)


def unescape(text: str) -> str:
    """Replace character references, whatever their numbers are."""
    return html.unescape(escape_huge_references(text))
