"""Limits the steps of a validation by recursive types.

Runs in the user's kernel, on the thread of the call. A union of recursive types (the nodes of an
expression) tries each member at each level of a value: the time doubles with every level, so that
forty nested brackets would take years. pydantic holds the GIL throughout, so nothing could stop it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from msgspec import Struct
from pydantic_core import core_schema

from mcp_notebook.kernel.schemas.pydantic_core_schemas import rewrite, walk_schemas

_Values = TypeVar("_Values")

STEPS_PER_PART = 10
"""Additional steps for each value within the arguments: a list of trees has many."""


class TooManySteps(Exception):
    """The arguments match the types in too many ways. Not a ValueError: pydantic collects those."""

    def __init__(self) -> None:
        super().__init__(
            "arguments: nested too deeply: they could match the tool's schema in too many ways. "
            "Send less deeply nested values."
        )


class _Steps(Struct):
    arguments: Any
    left: int
    is_extended: bool = False

    def count(self) -> None:
        self.left -= 1
        if self.left >= 0:
            return
        if not self.is_extended:
            self.is_extended = True
            self.left += STEPS_PER_PART * _count_parts(self.arguments)
        if self.left < 0:
            raise TooManySteps


_steps: ContextVar[_Steps | None] = ContextVar("mcp_notebook_comparisons", default=None)


def run_limited(
    validate: Callable[[Any], _Values], arguments: Mapping[str, Any], most: int
) -> _Values:
    """Validate arguments, with a limit on the steps by recursive types.

    Args:
        validate: Validates them.
        arguments: Many values within them raise the limit.
        most: The limit for any arguments.

    Raises:
        TooManySteps: From `count_step`.
    """
    token = _steps.set(_Steps(arguments, most))
    try:
        return validate(arguments)
    finally:
        _steps.reset(token)


def count_step(value: Any = None) -> Any:
    """Count a step, and return the value.

    Raises:
        TooManySteps: The limit is reached.
    """
    steps = _steps.get()
    if steps is not None:
        steps.count()
    return value


def count_recursion(schema: Any) -> Any:
    """Return a core schema that counts each step by a recursive type."""
    names = _find_recursive(schema)
    if not names:
        return schema

    def change(original: Mapping[str, Any], changed: dict[str, Any]) -> Any:
        if original["type"] != "definition-ref" or original["schema_ref"] not in names:
            return changed
        core = cast("core_schema.CoreSchema", changed)
        return core_schema.no_info_before_validator_function(count_step, core)

    return rewrite(schema, change)


def _find_recursive(schema: Any) -> set[str]:
    """Return the references of recursive types."""
    if schema["type"] != "definitions":
        return set()
    parts_of = {
        definition["ref"]: {
            part["schema_ref"]
            for part in walk_schemas(definition)
            if part["type"] == "definition-ref"
        }
        for definition in schema["definitions"]
    }
    return {name for name in parts_of if name in _follow(name, parts_of)}


def _follow(name: str, parts_of: Mapping[str, set[str]]) -> set[str]:
    """Return all references that are reachable from a type."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = parts_of.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _count_parts(value: Any) -> int:
    number = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        number += 1
        if isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return number


Keyword = Callable[[Any, Any, Any, Any], Iterator[Any]]
"""A keyword of `jsonschema`."""


def count_keyword(keyword: Keyword) -> Keyword:
    """Return a keyword of `jsonschema` that counts each use."""

    def validate(checker: Any, argument: Any, value: Any, schema: Any) -> Iterator[Any]:
        count_step()
        yield from keyword(checker, argument, value, schema) or ()

    return validate
