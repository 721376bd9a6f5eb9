"""Parts of messages: suggestions, counts, sizes, and text without terminal codes.

Pure functions on strings, in every process.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime

_KILO, _MINUTE, _HOUR = 1_000, 60, 3_600
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tabs and line feeds
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of text
    "\u2028\u2029\u206a-\u206f\ufff9-\ufffb\ud800-\udfff]"  # line ends, marks, surrogates
)
_LETTER = re.compile(
    r"(GREEK|LATIN) (SMALL|CAPITAL) (?:LETTER|LIGATURE) (?:DOTLESS |FINAL )?([A-Z]+)"
)
"""The name of a letter in Unicode."""


_MIN_BEGINNING = 3
"""Characters that two words have in common at their beginning, at least, to be similar."""


def suggest(word: str, words: Iterable[str]) -> str | None:
    """Return the word that was probably meant by `word`.

    Args:
        word: The unknown word.
        words: The valid words.

    Returns:
        The most similar one, or None if none is similar.
    """
    return next(iter(list_close_words(word, words, 1)), None)


def list_close_words(word: str, words: Iterable[str], limit: int = 3) -> list[str]:
    """Return the words that are similar to `word`, the most similar first.

    Args:
        word: The unknown word.
        words: The valid words.
        limit: The greatest number of words to return.
    """
    import difflib  # noqa: PLC0415 - for errors only

    known = list(words)
    close = difflib.get_close_matches(word, known, limit)
    if not close and len(word) >= _MIN_BEGINNING:  # the beginning of a longer word
        least = max(_MIN_BEGINNING, len(word) - 1)
        close = [other for other in known if other[:least] == word[:least]]
    return close[:limit]


def spell_ascii(text: str) -> str:
    """Return text without accents, and with Greek letters by their names: ``ano``, ``sigma_max``.

    Letters of other scripts stay as they are.

    Args:
        text: An identifier of Python.
    """
    spelled = ""
    for char in unicodedata.normalize("NFKD", text.replace("ß", "ss")):
        letter = None if char.isascii() else _LETTER.match(unicodedata.name(char, ""))
        if letter is not None:
            name = letter[3].replace("LAMDA", "LAMBDA")  # so Unicode spells it
            name = name.lower() if letter[2] == "SMALL" else name.capitalize()
            spelled += f" {name} " if letter[1] == "GREEK" else name
        elif not unicodedata.combining(char):
            spelled += char
    return re.sub(r"(?<=[A-Za-z0-9]) +(?=[A-Za-z])", "_", spelled).replace(" ", "")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 call``, ``1,000 calls``, ``2 entries``.

    Args:
        number: The number.
        noun: The noun in the singular.
        plural: Its plural, if that is not the noun with an "s".
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_seconds(seconds: float) -> str:
    """Return a duration in a suitable unit: ``12 ms``, ``3.4 s``, ``5 min``, ``2.1 h``."""
    if seconds < 1:
        return f"{seconds * _KILO:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


def format_moment(at: float) -> str:
    """Return a time in seconds since the epoch in UTC: ``2025-01-12T15:00:58.123Z``.

    Some validators of dates reject "+00:00".
    """
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def format_size(size: int) -> str:
    """Format a number of bytes in readable units."""
    if size < _KILO:
        return f"{size} bytes"
    number, unit = float(size), "bytes"
    for unit in ("kB", "MB", "GB", "TB"):  # noqa: B007 - used after the loop
        number /= _KILO
        if number < _KILO:
            break
    return f"{number:.3g} {unit}" if number < _KILO else f"{number:,.0f} {unit}"


def shorten(text: str, limit: int) -> str:
    """Return a text on one line, cut to a length."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def strip_escapes(text: str) -> str:
    """Remove ANSI escape codes: colors, cursor movements, window titles."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def make_printable(text: str) -> str:
    r"""Return a text that is safe to print on a terminal.

    Escape codes are removed. Other control characters, and characters that change the direction of
    text, are escaped as in JSON: ``\u202e``.
    """
    return _HARMFUL.sub(_write_number, strip_escapes(text).replace("\r\n", "\n"))


def _write_number(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def escape_around(text: str, position: int, reach: int = 4096) -> tuple[int, int]:
    """Return the start and end of the ANSI escape code around a position.

    Args:
        text: The text with its codes.
        position: A position between two characters.
        reach: The number of characters to search on each side.

    Returns:
        Its start and end; the position twice if it is not within a code.
    """
    for code in _ESCAPES.finditer(text, max(position - reach, 0), position + reach):
        if code.start() < position < code.end():
            return code.span()
    return position, position
