"""Explains what is wrong with a call's arguments, in lines that a model can act on.

Runs in the user's kernel, when a call's arguments are refused. Pure. Each line names the parameter,
the value that was sent, and what the published schema allows, instead of pydantic's own message.
"""

import datetime as dt
import math
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, core_schema, from_json, to_jsonable_python

from mcp_notebook.kernel.schemas.schema_words import (
    MAX_VALUES,
    Part,
    Schema,
    describe_schema,
    find_part,
    join_items,
    list_options,
    resolve,
)
from mcp_notebook.kernel.schemas.secrets import list_secrets, scrub
from mcp_notebook.text.redaction import MASK, has_secrets, redact_arguments
from mcp_notebook.text.wording import count, suggest

MAX_SHOWN = 80
"""Characters of a wrong value that a message repeats."""
MAX_TEXT = 500
"""Characters of a message by an author's own validator."""
MAX_LINES = 20
"""Problems that a message lists."""
MAX_EXPLAINED = 1_000
"""Problems that are examined: millions of them would take minutes."""
_AUTHORS = frozenset({"value_error", "assertion_error"})
_SCHEMA_ERRORS = frozenset(get_args(core_schema.ErrorType)) - _AUTHORS
"""Types of error that the published schema explains."""
_TAGS = frozenset({"union_tag_invalid", "union_tag_not_found"})
"""Types of error of a discriminated union."""
_OF_BYTES = frozenset({"bytes_too_short", "bytes_too_long"})
"""Types of error with bounds in bytes, while the schema's are in characters of base64."""
CONTAINER_ERRORS = frozenset(
    {
        *("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"),
        *("sequence_str", "dict_type", "mapping_type", "model_type", "model_attributes_type"),
        *("dataclass_type", "arguments_type", "named_tuple_type", "deque_type"),
        *("ordered_dict_type", "counter_type"),
    }
)
"""Types of error of a value that should be a list or an object."""
_KEY = "[key]"
"""Last part of pydantic's location of a problem with a dict's key."""
_WRITTEN_AS_TEXT = (dt.date, dt.time, dt.timedelta, Decimal)
_EXPLAINED = frozenset(
    {"type", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "anyOf", "oneOf"}
)
"""Keywords that the description of a schema explains."""
_ABSENT = frozenset({"missing", "extra_forbidden", "unexpected_keyword_argument"})


def explain_arguments(error: ValidationError, arguments: Mapping[str, Any], schema: Schema) -> str:
    """Return one line for each problem of a call's arguments.

    Args:
        error: What the validator raised.
        arguments: What it was given.
        schema: The tool's input schema.
    """
    problems = error.errors(include_url=False)
    visible = redact_arguments(schema, arguments) if has_secrets(schema, schema) else None
    lines: dict[str, None] = {}  # without duplicates, from the branches of a union
    for problem in problems[:MAX_EXPLAINED]:
        lines[_explain_problem(problem, arguments, visible, schema)] = None
    text = join_lines(list(lines), max(len(problems) - MAX_EXPLAINED, 0))
    # An author's validator may quote the value.
    return scrub(text, list_secrets(schema, arguments))


def join_lines(lines: Sequence[str], others: int = 0) -> str:
    """Return the first `MAX_LINES` problems, and the number of all others.

    Args:
        lines: One for each problem.
        others: The number of problems without a line.
    """
    more = max(len(lines) - MAX_LINES, 0) + others
    rest = [f"... and {count(more, 'more problem')}."] if more else []
    return "\n".join([*lines[:MAX_LINES], *rest])


def find_many_unknown(arguments: Mapping[str, Any], schema: Schema) -> str | None:
    """Return a message about arguments with a great many unknown names, else None.

    A validator would take time for each of them.

    Args:
        arguments: As the client sent them.
        schema: The tool's input schema, which lists all names.
    """
    names = schema["properties"]
    if len(arguments) <= len(names) + MAX_EXPLAINED:
        return None
    unknown = (name for name in arguments if name not in names)
    lines = [explain_unknown((name,), schema) for name in islice(unknown, MAX_LINES)]
    return join_lines(lines, sum(1 for _ in unknown))


def explain_unknown(path: tuple[int | str, ...], schema: Schema) -> str:
    """Return the line for a parameter that does not exist.

    Args:
        path: Where it was sent.
        schema: The tool's input schema.
    """
    return f"{format_path(path)}: no such parameter; {suggest_parameters(path, schema)}"


def explain_value(error: ValidationError, value: Any, schema: Schema, name: str) -> list[str]:
    """Return a line for each problem of any other value, without a full stop.

    Args:
        error: What the validator raised.
        value: What it was given.
        schema: The value's schema, with its ``$defs``.
        name: The value's name in messages.
    """
    lines: dict[str, None] = {}
    problems = error.errors(include_url=False)
    for problem in map(_move_to_tag, problems[:MAX_EXPLAINED]):
        path = tuple(follow_path(problem["loc"], value, absent=problem["type"] in _ABSENT))
        part = find_part(path, schema)
        if problem["type"] in _ABSENT:
            text = "missing" if problem["type"] == "missing" else "not allowed"
        elif problem["loc"][-1:] == (_KEY,):
            path = tuple(follow_path(problem["loc"][:-2], value, absent=False))
            text = _explain_key(problem)
        else:
            came = f"got {format_value(problem['input'])} ({_name_type(problem['input'])})"
            text = f"{came}; {_explain_reason(problem, part, schema)}"
        lines[f"{format_place(name, path)}: {text}"] = None
    return list(lines)


def format_place(name: str, path: Sequence[int | str]) -> str:
    """Return a path within a value as text: ``result.items[3].price``."""
    return name + "".join(
        f"[{part}]" if isinstance(part, int) else f".{_format_key(part)}" for part in path
    )


def format_value(value: Any) -> str:
    """Return a value's repr, limited in length; never raises."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = MAX_SHOWN
    try:
        text = short.repr(value)
    except Exception:  # noqa: BLE001 - a whole number of 5,000 digits; a list of the author's own
        return f"<{type(value).__name__}>"
    text = text if isinstance(value, str) else " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def shorten_message(text: str) -> str:
    """Return an author's message on one line, cut to `MAX_TEXT`, without a full stop."""
    line = " ".join(text.split()).removesuffix(".")
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."


# -- lines -----------------------------------------------------------------------------------------


def _explain_problem(
    problem: ErrorDetails,
    arguments: Mapping[str, Any],
    visible: Mapping[str, Any] | None,
    root: Schema,
) -> str:
    problem = _move_to_tag(problem)
    kind = problem["type"]
    path = tuple(follow_path(problem["loc"], arguments, absent=kind in _ABSENT))
    name = format_path(path)
    part = find_part(path, root)
    if kind in _ABSENT and kind != "missing":
        return explain_unknown(path, root)
    if kind == "missing":
        allowed = describe_schema(part, root) if part else ""
        return f"{name}: missing" + (f"; allowed: {allowed}." if allowed else ".")
    if problem["loc"][-1:] == (_KEY,):
        path = tuple(follow_path(problem["loc"][:-2], arguments, absent=False))
        is_open = visible is None or get_part(visible, path) != MASK
        text = _explain_key(problem) if is_open else "a validator refuses a key"
        return f"{format_path(path)}: {text}."
    # For bytes, show the base64 text that was sent.
    is_text = isinstance(problem["input"], bytes)
    value = get_part(arguments, path) if is_text else problem["input"]
    reason = _explain_reason(problem, part, root)
    if visible is not None and (open_part := get_part(visible, path)) is not value:
        if open_part == MASK:
            reason = _explain_secret(problem, part, root)
        return f"{name}: {describe_sent(open_part, value)}; {reason}."
    return f"{name}: {describe_sent(value, value)}; {reason}."


def describe_sent(visible: Any, value: Any) -> str:
    """Return a description of a value that was sent.

    Args:
        visible: The value without secrets.
        value: The value.
    """
    text = MASK if visible == MASK else format_value(visible)
    return f"got {text} ({name_json_type(value)})"


def describe_rule(error: Any, root: Schema) -> str:
    """Return what a value's schema allows, for an error of `jsonschema`.

    Its own message begins with the whole value, however long.
    """
    if error.validator in _EXPLAINED:
        return f"allowed: {describe_schema(error.schema, root)}"
    return f"its schema says `{error.validator}`: {format_value(error.validator_value)}"


def get_part(arguments: Any, path: Sequence[int | str]) -> Any:
    """Return the value at a path of the arguments; `MASK` below a secret."""
    value = arguments
    for part in path:
        if isinstance(value, str):
            break
        value = value[part]
    return value


def _explain_secret(problem: ErrorDetails, part: Schema, root: Schema) -> str:
    """Describe the values allowed for a secret, without messages of the author's validators."""
    is_allowed_text = is_allowed(problem["input"], part, root) and "contentEncoding" not in part
    is_silent = problem["type"] not in _SCHEMA_ERRORS or is_allowed_text
    return "a validator refuses it" if is_silent else f"allowed: {describe_schema(part, root)}"


def _explain_reason(problem: ErrorDetails, part: Part, root: Schema) -> str:
    """Describe the allowed values, or return pydantic's reason if the schema does not give one."""
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    is_known = problem["type"] in _SCHEMA_ERRORS or "<class '" in message
    value = problem["input"]
    if isinstance(value, _WRITTEN_AS_TEXT) and not problem["type"].endswith("_type"):
        value = to_jsonable_python(value)
    is_silent = problem["type"] in _OF_BYTES or is_allowed(value, part, root)
    if not part or not is_known or is_silent:
        return shorten_message(message)
    allowed = f"allowed: {describe_schema(part, root)}"
    broken = find_json_error(value) if problem["type"] in CONTAINER_ERRORS else None
    return f"{broken}; {allowed}" if broken else allowed


def _explain_key(problem: ErrorDetails) -> str:
    """Return why a dict cannot have this key."""
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    reason = shorten_message(message.removeprefix("Input ").removeprefix("String "))
    says = f"; the key {reason}" if reason.startswith("should ") else f"; {reason}"
    return f"got the key {format_value(problem['input'])}{says}"


def looks_like_json(text: str) -> bool:
    """Return whether a string may be an object or an array in JSON."""
    return text.lstrip().startswith(("[", "{"))


def find_json_error(value: Any) -> str | None:
    """Return why a string that looks like JSON is invalid; None if it is valid or does not."""
    if not isinstance(value, str) or not looks_like_json(value):
        return None
    try:
        from_json(value, allow_inf_nan=False)
    except ValueError as error:
        reason = str(error)  # JSON beyond the parser's depth limit is valid
        return None if reason.startswith("recursion") else f"it is not valid JSON ({reason})"
    return None


def _move_to_tag(problem: ErrorDetails) -> ErrorDetails:
    """Return a problem of a discriminated union as a problem of the discriminator's field."""
    field = str(problem.get("ctx", {}).get("discriminator", "")).strip("'")
    if problem["type"] not in _TAGS or not field.isidentifier():
        return problem
    is_object = isinstance(problem["input"], Mapping)
    moved: Any = {**problem, "loc": (*problem["loc"], field)}
    if problem["type"] == "union_tag_not_found" or not is_object or field not in problem["input"]:
        moved["type"] = "missing"
    else:
        moved |= {"type": "literal_error", "input": problem["input"][field]}
    return cast("ErrorDetails", moved)


def follow_path(
    location: Sequence[int | str], arguments: Any, *, absent: bool
) -> Iterator[int | str]:
    """Yield the parts of pydantic's location that exist in the arguments.

    The other parts name branches of a union or steps of a validator.

    Args:
        location: pydantic's.
        arguments: The value that it is a location in.
        absent: Whether its last part is missing from the value.
    """
    value: Any = arguments
    for position, part in enumerate(location):
        if isinstance(value, (list, tuple)):  # not as a dict: it may have a million items
            is_there = isinstance(part, int) and 0 <= part < len(value)
        else:
            value = value if isinstance(value, Mapping) else _list_members(value)
            is_there = part in value
        if is_there:
            value = value[part]
        elif not (absent and position == len(location) - 1):
            continue
        yield part


def format_path(path: Sequence[int | str]) -> str:
    """Return a path of the arguments as text."""
    return format_place(_format_key(path[0]), path[1:]) if path else "arguments"


def _format_key(part: int | str) -> str:
    """Return a part of a path, short and on one line."""
    text = str(part)
    return text if text.isprintable() and len(text) <= MAX_SHOWN else format_value(text)


def _list_members(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, BaseModel):
        return getattr(value, "__dict__", {})
    if is_dataclass(value):
        return {item.name: getattr(value, item.name, None) for item in fields(value)}
    return {}


def suggest_parameters(path: tuple[int | str, ...], root: Schema) -> str:
    """Return the name that was probably meant by an unknown parameter, or all names."""
    parent = find_part(path[:-1], root)
    names = [name for option in list_options(parent, root) for name in option.get("properties", {})]
    if close := suggest(str(path[-1]), names):
        return f"did you mean {close!r}?"
    if not names:
        return "there are none."
    return f"there are: {join_items(names, ', ', MAX_VALUES)}."


def name_json_type(value: Any) -> str:
    """Return the name of a value's type in JSON."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _name_type(value: Any) -> str:
    """Return the name of a value's type in JSON, or in Python if JSON has no such type."""
    plain = value is None or type(value) in (bool, int, float, str, list, dict)
    return name_json_type(value) if plain else type(value).__name__


# -- whether the description of a schema allows a value that was refused ---------------------------


def is_allowed(value: Any, schema: Part, root: Schema) -> bool:
    """Return whether a schema's description allows a value, although it was refused.

    Args:
        value: As a client sent it, or a function returned it.
        schema: The schema of the value.
        root: The whole schema, for its ``$defs``.
    """
    target = resolve(schema, root)
    if "const" in target or "enum" in target:
        listed = target.get("enum", [target.get("const")])
        return any(value == item and type(value) is type(item) for item in listed)
    if options := target.get("anyOf") or target.get("oneOf"):
        return any(is_allowed(value, option, root) for option in options)
    if target.get("format") == "duration":
        return _is_duration(value)
    kinds = target.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds or list(_KINDS)
    return any(_KINDS[name](value) for name in names if name in _KINDS) and _is_within(
        value, target
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, (list, tuple)),
    "object": lambda value: isinstance(value, dict),
}
_FORMATS: Mapping[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "date-time": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
}


def _is_duration(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, str) and value.lstrip("+-").startswith("P"))


def _is_within(value: Any, target: Schema) -> bool:
    if isinstance(value, str):
        return _has_length(value, target, "Length") and _has_format(value, target)
    if isinstance(value, (list, tuple)):
        return _has_length(value, target, "Items")
    if not _is_number(value) or value != value:  # noqa: PLR0124 - NaN; `isnan` fails for large integers
        return True
    step = target.get("multipleOf")
    return (
        value >= target.get("minimum", -math.inf)
        and value <= target.get("maximum", math.inf)
        and not ("exclusiveMinimum" in target and value <= target["exclusiveMinimum"])
        and not ("exclusiveMaximum" in target and value >= target["exclusiveMaximum"])
        # Only pydantic can tell a multiple: it allows for rounding.
        and step is None
    )


def _has_length(value: Any, target: Schema, of: str) -> bool:
    return bool(target.get(f"min{of}", 0) <= len(value) <= target.get(f"max{of}", math.inf))


def _has_format(value: str, target: Schema) -> bool:
    if "pattern" in target:
        return False  # the description repeats the pattern
    try:
        _FORMATS.get(target.get("format", ""), str)(value)
    except ValueError:
        return False
    return True
