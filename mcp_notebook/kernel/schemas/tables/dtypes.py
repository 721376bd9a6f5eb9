"""Names of the data libraries' dtypes: what their values are, and what another library calls them.

Runs in the user's kernel, at definition. No library of tables is imported.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from mcp_notebook.kernel.schemas.pydantic_core_schemas import rewrite

_KINDS: tuple[tuple[str, Any], ...] = (
    ("u?int", int),
    ("float|double", float),
    ("bool|boolean", bool),
    ("str|string|utf8|large_string", str),
    ("datetime|timestamp", dt.datetime),
    ("timedelta|duration", dt.timedelta),
    ("date", dt.date),
    ("category|categorical|enum|object", Any),
)
"""Names of dtypes, up to their size, and the type of what is in them."""
_SYNONYMS: dict[str, str] = {
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("str", "string", "utf8", "large_string"), "string"),
    **dict.fromkeys(("category", "categorical"), "category"),
    **dict.fromkeys(("date", "date32"), "date"),
    "int": "int64",
    "uint": "uint64",
    "float": "float64",
    "double": "float64",
}
"""Dtypes that several libraries have, by their names in lower case."""
_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""pyarrow's own names, which mean other dtypes elsewhere."""
_CHARACTERS = {
    "b": "bool",
    "f": "float",
    "i": "int",
    "u": "uint",
    "M": "datetime64",
    "m": "timedelta64",
}
_CODE = re.compile(r"[<>=|]?([bfiuMm])([1248])(\[\w+\])?")
"""numpy's short names: ``f8``, ``M8[ns]``."""
_SIZED_INTEGER = re.compile(r"(u?)int(8|16|32|64)(?:\[.*\])?", re.IGNORECASE)
_SMALL_FLOAT = re.compile(r"(float16|float32)(?:\[.*\])?", re.IGNORECASE)
_UNIT = re.compile(r"\b(s|ms|us|ns)\b")
_WORD = re.compile(r"([A-Za-z_]+?)_?\d*(?:\[.*\]|\(.*\))?")
_LARGEST = 64
"""Bits of integers whose limits would be noise in a schema."""
LARGEST_FLOATS = {"float16": 65504.0, "float32": 3.4028234663852886e38}
_PRECISION = 53
"""Bits of the whole numbers up to which a float has each one."""
_PRECISIONS = {"float16": 11, "float32": 24}
"""The same of smaller floats."""
_MAX_FLOAT_BITS = 1024


def find_dtype_name(kind: Any) -> str | None:
    """Return a dtype's name as its library writes it; None if it is no dtype.

    For a dictionary of pyarrow it is the name of the dtype of its values.
    """
    if isinstance(kind, str):
        return _expand_code(kind)
    library = get_library_name(kind)
    if library not in ("numpy", "pandas", "polars", "pyarrow"):
        return None
    if isinstance(kind, type):
        return kind.__name__.removesuffix("_")
    if is_dictionary(kind):
        return find_dtype_name(kind.value_type)
    name = getattr(kind, "name", None)
    text = name if isinstance(name, str) else str(kind)
    return _ARROW.get(text, text) if library == "pyarrow" else text


def is_dictionary(kind: Any) -> bool:
    """Tell whether a dtype is a dictionary of pyarrow, which others call categories."""
    return get_library_name(kind) == "pyarrow" and type(kind).__name__ == "DictionaryType"


def get_library_name(kind: Any) -> str:
    """Return the name of the package that a dtype is of."""
    owner = kind if isinstance(kind, type) else type(kind)
    return owner.__module__.partition(".")[0]


def find_hint(name: str) -> Any:
    """Return the type hint of a dtype's values; NotImplemented if JSON has none."""
    if size := _SIZED_INTEGER.fullmatch(name):
        return _make_integer_hint(signed=not size[1], bits=int(size[2]))
    if size := _SMALL_FLOAT.fullmatch(name):
        name = size[1].lower()
        check = AfterValidator(make_range_check(name))
        return Annotated[float, BeforeValidator(make_rounding_check(name)), check]
    word = _WORD.fullmatch(name)
    for pattern, hint in _KINDS:
        if word is not None and re.fullmatch(pattern, word[1], re.IGNORECASE):
            return hint
    return NotImplemented  # pydantic has no schema for it


def is_rounded(value: int, name: str = "float64") -> bool:
    """Tell whether a whole number would be another one as a float of this name."""
    size = value.bit_length()
    spare = size - _PRECISIONS.get(name, _PRECISION)
    return spare > 0 and (size > _MAX_FLOAT_BITS or value % (1 << spare) != 0)


def make_rounding_check(name: str) -> Callable[[Any], Any]:
    """Return a check, before a value is made a float, that no whole number changes by that."""
    largest = 2 ** _PRECISIONS.get(name, _PRECISION)

    def check(value: Any) -> Any:
        if type(value) is float or not is_rounded(_read_integer(value), name):
            return value
        raise PydanticCustomError(
            "rounded",
            "it would be rounded: floats have each whole number only up to {largest}",
            {"largest": largest},
        )

    return check


def _read_integer(value: Any) -> int:
    """Return a whole number, also of a text; 0 for anything else."""
    try:
        return int(value) if type(value) in (int, str) else 0
    except ValueError:
        return 0


def refuse_rounding(schema: Any) -> Any:
    """Return a core schema whose floats are no other numbers than were sent, at any depth."""

    def change(original: Mapping[str, Any], changed: dict[str, Any]) -> Any:
        if original["type"] != "float":
            return changed
        reference = changed.pop("ref", None)
        core = cast("core_schema.CoreSchema", changed)
        return core_schema.no_info_before_validator_function(
            make_rounding_check("float64"), core, ref=reference
        )

    return rewrite(schema, change)


def make_range_check(name: str) -> Callable[[float], float]:
    """Return a check that a float does not become infinite in a smaller dtype."""
    largest = LARGEST_FLOATS[name]

    def check(value: float) -> float:
        if abs(value) > largest and abs(value) != float("inf"):
            raise PydanticCustomError(
                "float_range",
                "its dtype, {name}, ends at {largest}",
                {"name": name, "largest": f"{largest:g}"},
            )
        return value

    return check


def describe_long_integer(low: int, bits: int) -> dict[str, Any] | None:
    """Return the JSON Schema of integers whose limits would be noise in it; None of shorter ones.

    Args:
        low: The least integer.
        bits: How many bits an integer has.
    """
    if bits < _LARGEST:
        return None
    return {"type": "integer"} | ({} if low else {"minimum": 0})


def find_common_name(name: str) -> str | None:
    """Return what a dtype is called here, whichever library wrote it; None if only that has it.

    ``int8``, ``float32``, ``string``, ``category``, ``datetime[us]``...
    """
    plain = name.lower().partition("[")[0]
    if re.fullmatch(r"u?int(8|16|32|64)|float(16|32|64)", plain):
        return plain
    if plain in _SYNONYMS:
        return _SYNONYMS[plain]
    hint = find_hint(name)
    if hint not in (dt.datetime, dt.timedelta) or has_zone(name):
        return None
    word = "datetime" if hint is dt.datetime else "duration"
    return f"{word}[{find_unit(name)}]"


def find_unit(name: str) -> str:
    """Return the unit of a dtype of moments or durations: ``s``, ``ms``, ``us`` or ``ns``."""
    unit = _UNIT.search(name)
    return unit[1] if unit else "us"


def has_zone(name: str) -> bool:
    """Tell whether a dtype of moments has a time zone, by its name."""
    return "," in name.replace(", time_zone=None", "")


def _expand_code(name: str) -> str:
    code = _CODE.fullmatch(name)
    if code is None:
        return name
    word, size, unit = _CHARACTERS[code[1]], int(code[2]), code[3] or ""
    if code[1] in "Mm":
        return f"{word}{unit}"
    return word if code[1] == "b" else f"{word}{8 * size}"


def _make_integer_hint(*, signed: bool, bits: int) -> Any:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    checked = Annotated[int, Field(ge=low, le=high)]
    published = describe_long_integer(low, bits)
    return checked if published is None else Annotated[checked, WithJsonSchema(published)]
