"""Pieces of the sentences that people read: suggestions, counts, text without terminal codes.

Runs in every process. Pure functions on strings; which sentence a person gets is the business of
the module that knows what went wrong.
"""

import difflib
import re
from collections.abc import Iterable

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def suggest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that somebody who wrote `word` most likely meant.

    Args:
        word: As it was written.
        known: The words that would have been right.

    Returns:
        The closest one; None if none is close.
    """
    return next(iter(list_close_words(word, known, 1)), None)


def list_close_words(word: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return the known words that are close to `word`, the closest first.

    Args:
        word: As it was written.
        known: The words that would have been right.
        limit: The greatest number of words to return.
    """
    return difflib.get_close_matches(word, list(known), limit)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 call``, ``1,000 calls``, ``2 entries``.

    Args:
        number: How many.
        noun: In the singular.
        plural: Where it is not the noun with an "s".
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def strip_escapes(text: str) -> str:
    """Remove ANSI escape codes: colours, cursor movements, window titles."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def escape_around(text: str, position: int, reach: int = 4096) -> tuple[int, int]:
    """Return where the ANSI escape code begins and ends that a position lies within.

    Args:
        text: With codes in it.
        position: Between two characters.
        reach: Characters before and behind the position in which a code is looked for.

    Returns:
        Both ends; twice the position itself if it lies within none.
    """
    for code in _ESCAPES.finditer(text, max(position - reach, 0), position + reach):
        if code.start() < position < code.end():
            return code.span()
    return position, position
