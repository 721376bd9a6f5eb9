"""Arguments as a client sent them: NaN and infinity are refused, JSON within a string is parsed.

Runs in the user's kernel, wherever a call runs. Pure. Parsers turn ``1e400`` into infinity, which
is not the value that the client sent. Models sometimes write an object or an array as a string; it
is parsed only after the arguments were refused, and only where no string is allowed.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError, from_json

from mcp_notebook.kernel.schemas.schema_words import list_options
from mcp_notebook.kernel.schemas.validation_messages import (
    CONTAINER_ERRORS,
    follow_path,
    looks_like_json,
)

MAX_LAYERS = 3
"""How many levels of JSON within a string are parsed."""
MAX_VALUES = 1_000_000
"""Values and names in all strings that are parsed at once; the bridge counts a string as one."""
_CONTAINERS = ("array", "object")
_LIMITING = frozenset({"format", "enum", "const", "anyOf", "oneOf", "allOf"})
"""Keywords of schemas that do not take every text."""

Place = tuple[int | str, ...]
"""The path of a value within the arguments."""


def list_text_places(error: ValidationError, arguments: Mapping[str, Any]) -> Iterator[Place]:
    """Yield where pydantic got a string in place of a list or an object.

    Args:
        error: What the validator raised.
        arguments: What it was given.
    """
    for problem in error.errors(include_url=False, include_context=False):
        if problem["type"] in CONTAINER_ERRORS and isinstance(problem["input"], str):
            yield tuple(follow_path(problem["loc"], arguments, absent=False))


def list_schema_text_places(errors: Iterable[Any]) -> Iterator[Place]:
    """Yield the same for errors of `jsonschema`."""
    for error in errors:
        if isinstance(error.instance, str) and misses_container(error):
            yield tuple(error.absolute_path)


def read_json_texts(arguments: Mapping[str, Any], places: Iterable[Place]) -> dict[str, Any] | None:
    """Return the arguments with the strings at these places parsed as JSON.

    Args:
        arguments: Not changed.
        places: Where the strings are.

    Returns:
        None if no text there is a JSON object or array, or if they have more than `MAX_VALUES`.
    """
    tree: dict[int | str, Any] = {}
    for place in places:
        branch = tree
        for part in place:
            branch = branch.setdefault(part, {})
    readable = tree and _count_values(arguments, tree) <= MAX_VALUES
    changed: Any = _read_at(arguments, tree) if readable else arguments
    return None if changed is arguments else changed


def misses_container(error: Any) -> bool:
    """Return whether an error of `jsonschema` is of a value that could be a list or an object."""
    return any(map(_wants_container, [error, *(error.context or ())]))


def _wants_container(error: Any) -> bool:
    allowed = error.validator_value if error.validator == "type" else ()
    return any(name in ([allowed] if isinstance(allowed, str) else allowed) for name in _CONTAINERS)


def _read_at(value: Any, tree: Mapping[int | str, Any]) -> Any:
    """Return the value with the strings at places parsed; the same object if none is JSON.

    Args:
        value: A string, or a container of strings.
        tree: The places below it, nested, so that a list of a million strings is copied once.
    """
    if not tree:
        return _read(value)
    parts = {part: _read_at(value[part], branch) for part, branch in tree.items()}
    changed = {part: item for part, item in parts.items() if item is not value[part]}
    if not changed:
        return value
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    for part, item in changed.items():
        copy[part] = item
    return copy


def _count_values(value: Any, tree: Mapping[int | str, Any]) -> int:
    """Return an upper bound of the values and names in the strings at places."""
    if tree:
        return sum(_count_values(value[part], branch) for part, branch in tree.items())
    return sum(map(value.count, ",:[{")) if looks_like_json(value) else 0


def _read(text: str) -> Any:
    if not looks_like_json(text):
        return text
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text


# -- NaN and infinity ------------------------------------------------------------------------------


_MAX_ERRORS = 15
"""Numbers that an error lists."""
_PLAIN = frozenset({str, int, bool, type(None)})


def refuse_infinite(arguments: Mapping[str, Any]) -> None:
    """Refuse NaN and infinity, wherever they stand in a JSON value.

    Raises:
        ValidationError: Names their places.
    """
    if isinstance(arguments, dict) and _is_plain(arguments.values()):  # as most are
        return
    problems = [
        InitErrorDetails(type=_explain(number), loc=place, input=number)
        for place, number in islice(_find_infinite(arguments, ()), _MAX_ERRORS)
    ]
    if problems:
        raise ValidationError.from_exception_data("arguments", problems)


def _explain(number: float) -> PydanticCustomError:
    reason = "JSON has no NaN" if math.isnan(number) else "numbers go up to 1.8e308"
    return PydanticCustomError("finite", "{reason}", {"reason": reason})


def _find_infinite(
    value: Mapping[str, Any] | list[Any], place: Place
) -> Iterator[tuple[Place, float]]:
    # All items at once first: many times faster for a list of a million numbers.
    if _is_plain(value if isinstance(value, list) else value.values()):
        return
    for name, item in enumerate(value) if isinstance(value, list) else value.items():
        if type(item) is float and not math.isfinite(item):
            yield (*place, name), item
        elif type(item) in (list, dict):
            yield from _find_infinite(item, (*place, name))


def _is_plain(items: Collection[Any]) -> bool:
    kinds = set(map(type, items))
    return kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, items)))


def split_texts(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a prompt's arguments, which are texts, with lists and without what was left empty.

    People type them into a form: ``a, b`` is a list unless the parameter takes text as well, and an
    empty field is an argument that was not given.

    Args:
        arguments: As the client sent them.
        schema: The schema of all arguments.
    """
    given = {}
    for name, value in arguments.items():
        options = list_options(schema.get("properties", {}).get(name, True), schema)
        if not isinstance(value, str) or any(map(_takes_any_text, options)):
            given[name] = value
        elif value.strip():
            is_list = any(option.get("type") == "array" for option in options)
            is_list = is_list and not value.lstrip().startswith("[")
            given[name] = [item.strip() for item in value.split(",")] if is_list else value
    return given


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type", "string") == "string" and schema.keys().isdisjoint(_LIMITING)
