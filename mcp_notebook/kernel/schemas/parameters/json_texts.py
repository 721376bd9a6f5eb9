"""JSON that a client sent as text for an object or an array: models write it so now and then.

Runs in the user's kernel, when a call's arguments are refused: a text that is allowed where it
stands is never read. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from mcp_notebook.kernel.schemas.validation_messages import (
    CONTAINER_ERRORS,
    follow_path,
    looks_like_json,
)
from mcp_notebook.settings.limits import DEFAULT_LIMITS

MAX_LAYERS = 3
"""Texts within texts that are read."""
MAX_VALUES = DEFAULT_LIMITS.max_argument_values
"""Values and names in all texts that are read at once: the bridge has counted a text as one."""
_CONTAINERS = ("array", "object")

Place = tuple[int | str, ...]
"""Where in the arguments something is."""


def list_text_places(error: ValidationError, arguments: Mapping[str, Any]) -> Iterator[Place]:
    """Yield where pydantic got a text in place of a list or an object.

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
    """Return the arguments with the texts at these places read as JSON.

    Args:
        arguments: They stay as they are.
        places: Where texts are.

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
    """Tell whether an error of `jsonschema` is of a value that could be a list or an object."""
    return any(map(_wants_container, [error, *(error.context or ())]))


def _wants_container(error: Any) -> bool:
    allowed = error.validator_value if error.validator == "type" else ()
    return any(name in ([allowed] if isinstance(allowed, str) else allowed) for name in _CONTAINERS)


def _read_at(value: Any, tree: Mapping[int | str, Any]) -> Any:
    """Return the value with the texts at places read, or the very value if none is JSON.

    Args:
        value: A text, or what has texts.
        tree: The places below it, part by part: a list of a million texts is copied once.
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
    """Return how many values and names the texts at places have at most."""
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
