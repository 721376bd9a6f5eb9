"""What a docstring says about a function and its parameters (Google, NumPy, reST).

Runs in the user's kernel, at definition. Pure functions.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TITLES = (
    r"Arguments|Args|Keyword Arguments|Keyword Args|Other Parameters|Parameters|Params"
    r"|Raises|Exceptions|Except|Warns|Returns|Return|Yields|Yield|Receives"
)
_GOOGLE = re.compile(rf"(?:{_TITLES}):\s*$", re.IGNORECASE)
_NUMPY = re.compile(rf"(?:{_TITLES})\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"-{3,}\s*$")
_REST = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|yields?|raises?|except"
    r"|exception)\b[^:]*:"
)


@dataclass(frozen=True)
class FunctionDoc:
    """A docstring, taken apart."""

    description: str = ""
    """The text without the sections on parameters, results and exceptions; examples and notes stay,
    since they help a model too."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What is said about each parameter."""


def parse_docstring(docstring: str | None) -> FunctionDoc:
    """Take a docstring apart; one that no style fits is all description."""
    text = inspect.cleandoc(docstring or "")
    described = "\n".join(_drop_sections(text.splitlines())).strip()
    if described == text:
        return FunctionDoc(text)
    return FunctionDoc(re.sub(r"\n{3,}", "\n\n", described), _parse_parameters(text))


def _parse_parameters(text: str) -> dict[str, str]:
    """Return what the style that finds the most parameters finds."""
    # Late: a notebook pays for the parser at its first tool, not when the extension is loaded.
    from docstring_parser import DocstringStyle, parse  # noqa: PLC0415

    best: dict[str, str] = {}
    for style in (DocstringStyle.GOOGLE, DocstringStyle.NUMPYDOC, DocstringStyle.REST):
        try:
            parsed = parse(text, style)
        except Exception:  # noqa: BLE001, S112 - an odd docstring must not prevent a tool
            continue
        texts = {
            # NumPy allows `x, y : int`.
            name.strip().lstrip("*"): " ".join((parameter.description or "").split())
            for parameter in parsed.params
            if parameter.args[0] != "attribute"
            for name in parameter.arg_name.split(",")
        }
        if len(texts) > len(best):
            best = texts
    return best


def _drop_sections(lines: list[str]) -> Iterator[str]:
    """Yield the lines outside the sections; the parser would lose all text that follows one."""
    inside = ""
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if _UNDERLINE.match(following):
            inside = "numpy" if _NUMPY.match(line) else ""
        elif _GOOGLE.match(line) or _REST.match(line):
            inside = "indented"
        elif inside == "indented" and line and not line[0].isspace():
            inside = ""
        if not inside:
            yield line
