"""Types in the words of docstrings (``int, optional``, ``list of float``) as type hints.

Runs in the user's kernel, at definition. Pure. Only plain words are known: a docstring is text for
people, so that what is not surely a type stays any value.
"""

import ast
import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("int", "integer", "ints", "integers"), int),
    **dict.fromkeys(("float", "floats", "number", "numbers", "scalar", "double"), float),
    **dict.fromkeys(("str", "string", "text", "strings", "strs"), str),
    **dict.fromkeys(("bool", "boolean", "bools", "booleans"), bool),
    **dict.fromkeys(("list", "sequence"), list),
    **dict.fromkeys(("dict", "dictionary", "mapping"), dict),
    **dict.fromkeys(("path", "pathlib.path", "path-like", "path_like"), Path),
    **dict.fromkeys(("date", "datetime.date"), dt.date),
    **dict.fromkeys(("datetime", "datetime.datetime"), dt.datetime),
    **dict.fromkeys(("timedelta", "datetime.timedelta"), dt.timedelta),
    "decimal": Decimal,
    "tuple": tuple,
    "set": set,
    "none": None,
}
_NOT_A_TYPE = re.compile(r"optional|keyword[- ]only|default\b.*|by default.*", re.IGNORECASE)
_ITEMS = re.compile(r"(list|sequence|set) of (.+)", re.IGNORECASE)
_BRACKETS = re.compile(r"(list|sequence|set)\[(.+)\]", re.IGNORECASE)
_SHAPE = re.compile(r"\s+(?:of|with) (?:shape|length)\b.*", re.IGNORECASE)
_COMMA = re.compile(r",(?![^{\[(]*[}\])])")
_MAX_TYPE = 300
"""Characters of what is read at all."""


def read_documented_type(text: str) -> Any:
    """Return the type hint that a docstring's words stand for.

    Args:
        text: What stands behind the colon or in parentheses: ``float or None, default: 0.5``.

    Raises:
        ValueError: They stand for none that is surely known.
    """
    if len(text) > _MAX_TYPE:
        raise ValueError(text)
    parts = [part.strip() for part in _COMMA.split(text)]
    words = [part for part in parts if part and not _NOT_A_TYPE.fullmatch(part)]
    # "int, float or None" is a list of types as well.
    options = [option for part in words for option in re.split(r"\s+or\s+|\s*\|\s*", part)]
    if not options:
        raise ValueError(text)
    hints = [_read_option(option.removeprefix("or ").strip()) for option in options]
    return Union[tuple(hints)]  # noqa: UP007 - as many as there are


def _read_option(text: str) -> Any:
    if text.startswith("{") and text.endswith("}"):
        return _read_choices(text[1:-1])
    items = _ITEMS.fullmatch(text) or _BRACKETS.fullmatch(text)
    if items is not None and not items[2].startswith("shape"):
        container: Any = set if items[1].lower() == "set" else list
        return container[_read_option(items[2].strip())]
    word = _SHAPE.sub("", text).strip("`*~ :").removeprefix("class:").strip("`").lower()
    if word not in _WORDS:
        raise ValueError(text)
    return _WORDS[word]


def _read_choices(text: str) -> Any:
    try:
        values = ast.literal_eval(f"({text},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(text) from None
    if not values or not all(isinstance(value, (str, int, bool, type(None))) for value in values):
        raise ValueError(text)
    return Literal[tuple(values)]
