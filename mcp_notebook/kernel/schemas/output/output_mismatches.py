"""Where a result does not match its output schema, one line for each place.

Runs in the user's kernel, wherever a call ran. Pure, but for the thread that loads the validator
early.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from threading import Thread
from typing import Any

from mcp_notebook.kernel.schemas.object_root import WRAP, Schema
from mcp_notebook.kernel.schemas.schema_words import describe_schema
from mcp_notebook.kernel.schemas.validation_messages import (
    MAX_LINES,
    format_place,
    format_value,
    name_json_type,
)

_VALIDATOR = "mcp_notebook.kernel.schemas.by_hand.json_validator"


def load_validator_early() -> None:
    """Load what compares in a thread: the first result need not wait for it."""
    if _VALIDATOR not in sys.modules:
        Thread(target=import_module, args=(_VALIDATOR,), daemon=True).start()


def make_comparison(schema: Schema) -> Any:
    """Return what `find_mismatches` compares values by, for any number of threads.

    Args:
        schema: As published. Patterns that cannot be followed here are not compared: pydantic, or
            the author, has followed them already.
    """
    from mcp_notebook.kernel.schemas.by_hand import json_validator  # noqa: PLC0415 - slow to load

    return json_validator.make_validator(json_validator.drop_unusable_patterns(schema))


def find_mismatches(value: Any, comparison: Any, schema: Schema, *, is_wrapped: bool) -> list[str]:
    """Return a line for each place where a JSON value does not match; none if it does.

    Args:
        value: As it would be sent.
        comparison: What `make_comparison` made of the schema.
        schema: As published.
        is_wrapped: Whether the function's own value is within `WRAP`.

    Raises:
        Exception: The schema cannot be followed (a reference to itself, a pattern of no end).
    """
    from mcp_notebook.kernel.schemas.by_hand import json_validator  # noqa: PLC0415 - slow to load

    lines: dict[str, None] = {}
    for error in json_validator.find_errors(comparison, value):
        for deepest in _find_deepest(error):
            path = list(deepest.absolute_path)
            lines[_describe_mismatch(deepest, path[1:] if is_wrapped else path, schema)] = None
        if len(lines) > MAX_LINES:
            break
    return list(lines)


def _find_deepest(error: Any) -> Sequence[Any]:
    """Return the error, or those of the branch of a choice that the value comes closest to."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return [error]
    branches: dict[Any, list[Any]] = {}
    for cause in error.context:
        branches.setdefault(cause.schema_path[0], []).append(cause)
    # A branch whose errors all lie below the value has the value's own type.
    deep = [causes for causes in branches.values() if all(cause.path for cause in causes)]
    if len(deep) != 1:
        return [error]
    return [deepest for cause in deep[0] for deepest in _find_deepest(cause)]


def _describe_mismatch(error: Any, path: list[str | int], root: Schema) -> str:
    name = format_place(WRAP, path)
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        listed = ", ".join(map(repr, missing[:MAX_LINES]))
        return f"{name}: {listed} missing"
    part = error.schema if isinstance(error.schema, dict) else {}
    came = f"got {format_value(error.instance)} ({name_json_type(error.instance)})"
    if error.validator in ("type", "enum", "const", "minimum", "maximum", "anyOf", "oneOf"):
        return f"{name}: {came}; allowed: {describe_schema(part, root)}"
    # jsonschema's message begins with the whole value, however long.
    limit = format_value(error.validator_value)
    return f"{name}: {came}; its schema says `{error.validator}`: {limit}"
