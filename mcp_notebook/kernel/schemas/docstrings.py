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
    types: dict[str, str] = field(default_factory=dict)
    """What is said about the type of each parameter that has one there."""


def parse_docstring(docstring: str | None) -> FunctionDoc:
    """Take a docstring apart; one that no style fits is all description."""
    text = inspect.cleandoc(docstring or "")
    described = "\n".join(_drop_sections(text.splitlines())).strip()
    if described == text:
        return FunctionDoc(text)
    return FunctionDoc(re.sub(r"\n{3,}", "\n\n", described), *_parse_parameters(text))


MAX_DESCRIPTION = 10_000
"""Characters of a description that are published: clients read them in every list of tools."""


def shorten_description(text: str) -> tuple[str, tuple[str, ...]]:
    """Return what is published of a docstring's text, and hints for its author."""
    if len(text) <= MAX_DESCRIPTION:
        return text, ()
    hint = (
        f"The docstring has {len(text):,} characters, and clients read it in every list of tools: "
        f"the first {MAX_DESCRIPTION:,} are published."
    )
    return shorten_text(text, MAX_DESCRIPTION), (hint,)


def shorten_text(text: str, limit: int) -> str:
    """Return a text of at most this length, cut between words, with a note of its full length."""
    if len(text) <= limit:
        return text
    note = f" ... [cut: {len(text):,} characters in all]"
    start = text[: limit - len(note)]
    end = max(start.rfind(" "), start.rfind("\n"))
    return f"{start[:end] if end > limit // 2 else start}{note}"


def _parse_parameters(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts and the types that the style which finds the most parameters finds."""
    # Late: a notebook pays for the parser at its first tool, not when the extension is loaded.
    from docstring_parser import DocstringStyle, parse  # noqa: PLC0415

    best: tuple[dict[str, str], dict[str, str]] = {}, {}
    for style in (DocstringStyle.GOOGLE, DocstringStyle.NUMPYDOC, DocstringStyle.REST):
        try:
            parsed = parse(text, style)
        except Exception:  # noqa: BLE001, S112 - an odd docstring must not prevent a tool
            continue
        items = [
            # NumPy allows `x, y : int`.
            (name.strip().lstrip("*"), parameter)
            for parameter in parsed.params
            if parameter.args[0] != "attribute"
            for name in parameter.arg_name.split(",")
        ]
        if len(items) > len(best[0]):
            best = (
                {name: " ".join((item.description or "").split()) for name, item in items},
                {name: item.type_name for name, item in items if item.type_name},
            )
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
