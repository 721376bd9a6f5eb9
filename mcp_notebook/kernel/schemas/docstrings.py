"""Parses docstrings for descriptions and types of parameters (Google, NumPy, reST).

Runs in the user's kernel, at definition. Pure functions. Words for types (``int, optional``,
``list of float``) become type hints where a function has none, as in scipy and scikit-learn. Only
common words are known; anything that is not certainly a type stays ``Any``. No data library is
imported: its types are known once the notebook has imported it.
"""

import ast
import datetime as dt
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args

from msgspec import Struct, field

from mcp_notebook.kernel.safe.libraries import find_imported

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


class FunctionDoc(Struct, frozen=True):
    """A parsed docstring."""

    description: str = ""
    """The text without the sections on parameters, results and exceptions; examples and notes stay,
    since they help a model."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Descriptions by parameter."""
    types: dict[str, str] = field(default_factory=dict)
    """Words for types, by parameter."""


def parse_docstring(docstring: str | None) -> FunctionDoc:
    """Parse a docstring; without a known style, all of it is the description."""
    text = inspect.cleandoc(docstring or "")
    described = "\n".join(_drop_sections(text.splitlines())).strip()
    if described == text:
        return FunctionDoc(text)
    return FunctionDoc(re.sub(r"\n{3,}", "\n\n", described), *_parse_parameters(text))


MAX_DESCRIPTION = 10_000
"""Characters of a description that are published: clients read them in every list of tools."""


def shorten_description(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a description cut to `MAX_DESCRIPTION`, and hints for its author."""
    if len(text) <= MAX_DESCRIPTION:
        return text, ()
    hint = (
        f"The docstring has {len(text):,} characters, and clients read it in every list of tools: "
        f"the first {MAX_DESCRIPTION:,} are published."
    )
    return shorten_text(text, MAX_DESCRIPTION), (hint,)


def shorten_text(text: str, limit: int) -> str:
    """Return a string of at most this length, cut between words, with a note of its full length."""
    if len(text) <= limit:
        return text
    note = f" ... [cut: {len(text):,} characters in all]"
    start = text[: limit - len(note)]
    end = max(start.rfind(" "), start.rfind("\n"))
    return f"{start[:end] if end > limit // 2 else start}{note}"


def _parse_parameters(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return descriptions and types by the style that finds the most parameters."""
    # Imported late: a notebook pays for the parser at its first tool, not at `%load_ext`.
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
    """Yield the lines outside the sections; the parser would drop all text after a section."""
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


# -- words for types ------------------------------------------------------------------------------


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
_NOT_A_TYPE = re.compile(
    r"optional|keyword[- ]only|default\b.*|by default.*|(?:of )?(?:shape|length|size)\b.*",
    re.IGNORECASE,
)
_ITEMS = re.compile(r"(list|sequence|set|tuple|dict) of (.+)", re.IGNORECASE)
_BRACKETS = re.compile(r"(list|sequence|set|tuple|dict)\[(.+)\]", re.IGNORECASE)
_ARRAY = re.compile(r"(.+?) of (\w+)", re.IGNORECASE)
_PAIR = re.compile(r"\{?\s*([\w. ]+?)(?:\s*[:,]|\s+to)\s+([^{}]+?)\s*\}?", re.IGNORECASE)
_SHAPE = re.compile(r"\s+(?:of|with) (?:shape|length|size)\b.*", re.IGNORECASE)
_DIMENSIONS = re.compile(r"(?:\([^()]*\)|\d-?d|(?:one|two)-dimensional)\s+", re.IGNORECASE)
_FRAMES = ("pandas", "polars")
_ALIASES = {"pandas": "pd", "polars": "pl"}
_ELEMENTS = {float: "float64", int: "int64", bool: "bool_", str: "str_"}
_COMMA = re.compile(r",(?![^{\[(]*[}\])])")
_MAX_TYPE = 300
"""Characters of the longest text that is parsed."""


def list_library_words(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return words for types of the data libraries that are imported, in lower case.

    A bare ``DataFrame`` belongs to the library that the function's module imports, or to the only
    imported one.

    Args:
        namespace: The globals of the function.
    """
    words: dict[str, Any] = {}
    imported = [name for name in _FRAMES if hasattr(find_imported(name), "DataFrame")]
    # By identity: comparing the notebook's variables would run code of theirs.
    variables = set(map(id, list(namespace.values())))
    near = [name for name in imported if id(sys.modules[name]) in variables] or imported
    for name in imported:
        prefixes = (f"{name}.", f"{_ALIASES[name]}.", *([""] if near == [name] else []))
        for kind in ("DataFrame", "Series"):
            known_class = getattr(sys.modules[name], kind)
            words |= {f"{prefix}{kind}".lower(): known_class for prefix in prefixes}
    if "pandas" in imported:
        for kind in ("Timestamp", "Timedelta"):
            known_class = getattr(sys.modules["pandas"], kind)
            words |= {f"{prefix}{kind}".lower(): known_class for prefix in ("pandas.", "pd.")}
    if (array := getattr(find_imported("numpy"), "ndarray", None)) is not None:
        words |= dict.fromkeys(("ndarray", "np.ndarray", "numpy.ndarray", "numpy array"), array)
        words |= dict.fromkeys(("array", "np.array", "numpy.array"), array)
        # What numpy.asarray takes, numbers included.
        like: Any = cast("Any", Union)[array, bool, int, float]
        words |= dict.fromkeys(("array_like", "array-like", "arraylike", "npt.arraylike"), like)
    return words


def read_documented_type(text: str, library_words: Mapping[str, Any] | None = None) -> Any:
    """Return the type hint for a docstring's words.

    Args:
        text: The text after the colon or in parentheses: ``float or None, default: 0.5``.
        library_words: From `list_library_words`.

    Raises:
        ValueError: They are not certainly a type.
    """
    if len(text) > _MAX_TYPE:
        raise ValueError(text)
    words = {**_WORDS, **(library_words or {})}
    parts = [part.strip() for part in _COMMA.split(text)]
    types = [part for part in parts if part and not _NOT_A_TYPE.fullmatch(part)]
    # "int, float or None" is a list of types as well.
    options = [option for part in types for option in re.split(r"\s+or\s+|\s*\|\s*", part)]
    if not options:
        raise ValueError(text)
    hints = [_read_option(option.removeprefix("or ").strip(), words) for option in options]
    return Union[tuple(hints)]  # noqa: UP007 - as many as there are


def _read_option(text: str, words: Mapping[str, Any]) -> Any:
    text = _DIMENSIONS.sub("", _SHAPE.sub("", text), count=1).strip()
    if text.startswith("{") and text.endswith("}"):
        return _read_choices(text[1:-1], words)
    items = _ITEMS.fullmatch(text) or _BRACKETS.fullmatch(text)
    if items is not None:
        return _read_container(items[1].lower(), items[2].strip(), words)
    word = text.strip("`*~ :").removeprefix("class:").strip("`").lower()
    if word in words:
        return words[word]
    array = _ARRAY.fullmatch(word)
    if array is None or "ndarray" not in words or array[1] not in words:
        raise ValueError(text)
    return _read_array(words[array[1]], _WORDS.get(array[2]), text)


def _read_container(name: str, items: str, words: Mapping[str, Any]) -> Any:
    container: Any = {"set": set, "tuple": tuple, "dict": dict}.get(name, list)
    if name == "dict":
        pair = _PAIR.fullmatch(items)
        if pair is None:
            raise ValueError(items)
        key, value = (_read_option(part, words) for part in pair.groups())
        return container[key, value]
    if name == "tuple":
        parts = items.removeprefix("(").removesuffix(")").split(",")
        hints = [_read_option(part.strip(), words) for part in parts if part.strip() != "..."]
        many = len(parts) == 1 or parts[-1].strip() == "..."
        return container[(*hints, ...)] if many else container[tuple(hints)]
    return container[_read_option(items, words)]


def _read_array(kind: Any, element: Any, text: str) -> Any:
    numpy: Any = sys.modules["numpy"]
    if element not in _ELEMENTS or numpy.ndarray not in (kind, *get_args(kind)):
        raise ValueError(text)
    from numpy.typing import NDArray  # noqa: PLC0415 - numpy is loaded, but before 2.0 not this

    array_of: Any = NDArray
    return array_of[getattr(numpy, _ELEMENTS[element])]


def _read_choices(text: str, words: Mapping[str, Any]) -> Any:
    try:
        values = ast.literal_eval(f"({text},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _read_alternatives(text, words)
    if not values or not all(isinstance(value, (str, int, bool, type(None))) for value in values):
        raise ValueError(text)
    return Literal[tuple(values)]


def _read_alternatives(text: str, words: Mapping[str, Any]) -> Any:
    """Return the type of ``{array-like, sparse matrix}``; JSON has no sparse matrices."""
    options = [part.strip() for part in text.split(",") if not part.strip().startswith("sparse ")]
    if not options:
        raise ValueError(text)
    return Union[tuple(_read_option(option, words) for option in options)]  # noqa: UP007
