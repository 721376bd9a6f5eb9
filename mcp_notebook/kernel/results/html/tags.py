"""Reads the tags of HTML of any size, well-formed or not, in one pass.

Runs in the user's kernel, on the thread of the call. Pure. The parser of Python's library looks for
the end of a comment or tag that has none again and again, up to the end of the document each time:
here each character is looked at a few times at most, as browsers do it. What becomes of the tags is
for `media` and `plots.bokeh_folium`; Markdown is made by `to_markdown`.
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

    What is in comments, scripts, styles and the attributes of other tags is skipped, and so is a
    tag that does not end.

    Args:
        markup: A document or part of one.
        names: In lower case; ``"/video"`` is the end of a video.
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
    """Turn references to characters that cannot exist into text: `int` refuses their numbers."""
    return _HUGE_REFERENCE.sub("&amp;", markup)


def unescape(text: str) -> str:
    """Return a text with its character references replaced, whatever their numbers are."""
    return html.unescape(escape_huge_references(text))
