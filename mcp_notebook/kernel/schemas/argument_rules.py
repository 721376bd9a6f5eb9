"""Which values parameters accept, where that differs from pydantic's own rules.

Runs in the user's kernel: the rules at definition, their checks wherever a call runs. Pure.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from enum import Enum, Flag
from functools import partial, reduce
from operator import or_
from typing import Any, cast

from pydantic.types import EncodedBytes
from pydantic_core import (
    PydanticCustomError,
    PydanticKnownError,
    core_schema,
    to_jsonable_python,
)

from mcp_notebook.kernel.safe.stand_ins import has_names_only
from mcp_notebook.kernel.schemas.comparison_limit import count_recursion
from mcp_notebook.kernel.schemas.pydantic_core_schemas import rewrite, walk_schemas

_BLANK = ("", "null", "none")
"""Texts that stand for None where no text is allowed."""
_NEVER_BLANK = {
    *(
        "int",
        "float",
        "bool",
        "complex",
        "decimal",
        "date",
        "datetime",
        "time",
        "timedelta",
        "uuid",
        "none",
    ),
    *("list", "tuple", "set", "frozenset", "generator", "dict", "typed-dict", "dataclass"),
}
"""Types that none of these texts is a value of."""
_OF_ROWS = frozenset(f"{__package__}.tables.{name}" for name in ("arrays", "columns"))
"""Modules whose validators take lists and rows only."""
_URL_SAFE = str.maketrans("-_", "+/", "\r\n")


def tighten(schema: Any) -> Any:
    """Return a core schema that validates by these rules, at any depth."""
    shared = {part["ref"]: part for part in walk_schemas(schema) if "ref" in part}
    return count_recursion(rewrite(schema, partial(_tighten_part, shared)))


def forbid_unknown(schema: Any) -> Any:
    """Return a core schema whose models refuse keys that they do not have, at any depth.

    A model whose configuration says what to do with them (``extra``) does that. One with an
    ``__init__`` of its own is asked: only that knows its keys.
    """
    return rewrite(schema, _forbid_unknown)


def _forbid_unknown(schema: Mapping[str, Any], changed: dict[str, Any]) -> Any:
    config = schema.get("config", {})
    if "extra_fields_behavior" in config:
        return changed
    if schema["type"] == "typed-dict" and schema.get("extra_behavior", "ignore") == "ignore":
        changed["extra_behavior"] = "forbid"
    elif schema["type"] in ("model", "dataclass") and not (
        schema.get("root_model") or schema.get("custom_init")
    ):
        changed["config"] = {**config, "extra_fields_behavior": "forbid"}
    return changed


def _tighten_part(
    shared: Mapping[str, Any], schema: Mapping[str, Any], changed: dict[str, Any]
) -> Any:
    if _decodes_itself(schema):
        return {**changed, "schema": schema["schema"]}
    if schema["type"] == "generator":  # checked in full before the function runs
        changed["type"] = "list"
    if schema["type"] == "enum":  # an alias of a member is not a choice of its own
        changed["members"] = list({id(member): member for member in schema["members"]}.values())
    check = _choose_check(schema)
    if schema["type"] == "nullable" and not _takes_blank(schema["schema"], shared):
        check = _read_blank
    if check is None:
        return changed
    reference = changed.pop("ref", None)
    core = cast("core_schema.CoreSchema", changed)
    return core_schema.no_info_before_validator_function(check, core, ref=reference)


def _choose_check(schema: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Return the check that runs before the schema of this type."""
    kind = schema["type"]
    if kind in _CHECKS:
        return _CHECKS[kind]
    if kind == "literal":
        return _make_choice_check(schema["expected"])
    if kind == "enum" and issubclass(schema["cls"], Flag):
        return _make_flag_check(schema["members"])
    if kind == "enum" and has_names_only(schema["cls"]):
        return _make_name_check(schema["members"])
    return _make_choice_check(schema["members"]) if kind == "enum" else None


def _check_bool(value: Any) -> Any:
    """Refuse numbers and texts that pydantic would read as a bool, except "true" and "false"."""
    if isinstance(value, bool) or _names_bool(value):
        return value
    raise PydanticKnownError("bool_type")


def _names_bool(value: Any) -> bool:
    return isinstance(value, str) and value.lower() in ("true", "false")


def _refuse_bool(value: Any) -> Any:
    if value is True or value is False:
        raise PydanticKnownError("int_type")
    return value


def _check_float(value: Any) -> Any:
    """Refuse a bool, and a string of digits that would become infinity."""
    if isinstance(value, str) and value[-1:].isdigit() and _is_number(value):
        number = float(value)
        if math.isinf(number):
            raise PydanticCustomError("finite", "numbers go up to 1.8e308")
    return _refuse_bool(value)


def _refuse_number(value: Any) -> Any:
    """Refuse a number, which pydantic would read as seconds since 1970; it is mostly a year."""
    if isinstance(value, (int, float)) or (isinstance(value, str) and _is_number(value)):
        raise PydanticKnownError("datetime_type")
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -- None ------------------------------------------------------------------------------------------


def _read_blank(value: Any) -> Any:
    """Return None for a text that stands for it."""
    return None if isinstance(value, str) and value.strip().lower() in _BLANK else value


def _takes_blank(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> bool:
    """Return whether one of the texts in `_BLANK` may be a value by itself.

    Args:
        schema: A core schema.
        shared: The schemas that others refer to.
    """
    kind = schema["type"]
    if kind in ("union", "tagged-union"):
        every = schema["choices"]
        every = every.values() if isinstance(every, dict) else every
        choices = (item[0] if isinstance(item, tuple) else item for item in every)
        return any(_takes_blank(choice, shared) for choice in choices)
    if kind in ("literal", "enum"):
        values = schema["expected"] if kind == "literal" else schema["members"]
        # Some enumerations are sent by name.
        forms = ((each, getattr(each, "name", 0), getattr(each, "value", 0)) for each in values)
        return any(
            isinstance(text, str) and text.lower() in _BLANK for form in forms for text in form
        )
    if kind == "definition-ref":
        reference = schema["schema_ref"]
        others = {name: item for name, item in shared.items() if name != reference}
        return reference not in shared or _takes_blank(shared[reference], others)
    if kind in ("function-after", "default", "nullable") or schema.get("root_model"):
        return _takes_blank(schema["schema"], shared)
    function = schema.get("function", {}).get("function")
    is_of_rows = getattr(function, "__module__", None) in _OF_ROWS
    return not is_of_rows and kind not in {*_NEVER_BLANK, "model"}


# -- bytes -----------------------------------------------------------------------------------------


def _decodes_itself(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is pydantic's ``Base64Bytes`` or a similar type."""
    if schema["type"] != "function-after":
        return False
    return isinstance(getattr(schema["function"]["function"], "__self__", None), EncodedBytes)


def _decode_base64(value: Any) -> Any:
    """Return the bytes of a base64 text in either alphabet, or of a ``data:`` URI."""
    if not isinstance(value, str):
        return value
    start, comma, _ = value[:200].partition(";base64,")
    text = value[len(start) + len(comma) :] if comma and start.startswith("data:") else value
    try:
        return base64.b64decode(text.translate(_URL_SAFE), validate=True)
    except (binascii.Error, ValueError):
        raise PydanticCustomError(
            "base64", "bytes are sent as base64, and this is not valid base64"
        ) from None


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "bool": _check_bool,
    **dict.fromkeys(("int", "complex", "decimal", "timedelta"), _refuse_bool),
    "float": _check_float,
    **dict.fromkeys(("date", "datetime", "time"), _refuse_number),
    "bytes": _decode_base64,
}


# -- enumerations ----------------------------------------------------------------------------------


def _make_flag_check(members: list[Any]) -> Callable[[Any], Any]:
    """Return a check for flags: any combination of members, and no other bit."""
    mask = reduce(or_, (member.value for member in members), 0)

    def check(value: Any) -> Any:
        _refuse_bool(value)
        if isinstance(value, Flag):  # a default
            return value
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            return value
        if number & ~mask or (isinstance(value, float) and value != number):
            raise PydanticKnownError("int_type")
        return number

    return check


def _make_name_check(members: list[Any]) -> Callable[[Any], Any]:
    """Return a check for an enumeration whose values only count: a member is sent as its name."""
    by_name = {member.name: member for member in members}
    expected = " or ".join(map(repr, by_name))

    def check(value: Any) -> Any:
        if isinstance(value, str) and not isinstance(value, Enum):
            if value not in by_name:
                raise PydanticKnownError("enum", {"expected": expected})
            return by_name[value]
        return _refuse_bool(value)

    return check


def _make_choice_check(choices: list[Any]) -> Callable[[Any], Any]:
    """Return a check for a ``Literal`` or an enumeration: members are sent as their values."""
    members = [item for item in choices if isinstance(item, Enum)]
    values = [item for item in choices if not isinstance(item, Enum)]
    takes_bool = any(isinstance(item, bool) for item in (*values, *(m.value for m in members)))
    if not members and not takes_bool:
        return _refuse_bool
    by_json = {_write_json(item.value): item for item in members}
    by_json |= {_write_json(item): item for item in values}

    def check(value: Any) -> Any:
        try:
            key = _write_json(value)
        except (TypeError, ValueError):  # a member already, in a default
            return value
        if key not in by_json and _names_bool(value):
            key = value.lower()
        if key in by_json:
            return by_json[key]
        return value if takes_bool else _refuse_bool(value)

    return check


def _write_json(value: Any) -> str:
    return json.dumps(to_jsonable_python(value))
