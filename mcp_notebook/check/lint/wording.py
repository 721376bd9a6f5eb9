"""Words of names and descriptions, and how alike two of them are.

Pure. English only: in other languages the rules say less, never more.
"""

import re
from collections.abc import Iterator

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_STOP_WORDS = frozenset(
    """
    a an the of for from in on at to by with and or as is are be it its this that these those which
    what all any each per one into their your our my his her was were will can may also not no do
    does via using use used given some tool function
    """.split()  # noqa: SIM905 - a table
)
_SYNONYMS = {
    word: group[0]
    for group in (
        ("get", "fetch", "load", "read", "return", "retrieve", "show", "give", "lookup", "obtain"),
        ("compute", "calculate", "calc", "evaluate", "determine"),
        ("make", "create", "build", "new", "generate", "produce"),
        ("delete", "remove", "drop", "erase"),
        ("change", "update", "edit", "modify", "alter"),
        ("plot", "draw", "chart", "graph", "visualize", "visualise"),
        ("info", "information", "details", "data"),
        ("client", "customer"),
        ("sale", "revenue"),
        ("list", "enumerate"),
        ("search", "find"),
    )
    for word in group
}
"""Words that a model takes for the same, in names of tools, by their stems."""


def split_words(text: str) -> list[str]:
    """Return the words of a name or sentence in lower case: ``topCustomers`` has two."""
    return [word.lower() for word in _WORD.findall(text.replace("'s", ""))]


def find_stems(text: str) -> frozenset[str]:
    """Return the words that carry the meaning, without endings, and synonyms as one word."""
    stems = (_find_stem(word) for word in split_words(text) if word not in _STOP_WORDS)
    return frozenset(_SYNONYMS.get(stem, stem) for stem in stems)


def find_plain_stems(text: str) -> frozenset[str]:
    """Return the words that carry the meaning, without endings."""
    return frozenset(_find_stem(word) for word in split_words(text) if word not in _STOP_WORDS)


def _find_stem(word: str) -> str:
    for ending, replacement in (("ies", "y"), ("sses", "ss"), ("s", ""), ("ing", ""), ("ed", "")):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and not word.endswith(("ss", "us", "is")):  # noqa: PLR2004
            return stem + replacement
    return word


def measure_overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the part of the words that two sets share, from 0 to 1 (Jaccard's index)."""
    return len(one & other) / len(one | other) if one | other else 1.0


def find_first_paragraph(text: str) -> str:
    """Return the text before the first empty line."""
    return " ".join(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].split())


def list_new_words(name: str, description: str) -> Iterator[str]:
    """Yield the words of a description that its tool's name does not have."""
    yield from sorted(find_plain_stems(description) - find_plain_stems(name))
