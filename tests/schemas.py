"""Schemas that come out of the package, checked by another implementation of JSON Schema."""

import functools
import json
from typing import Any

from jsonschema import Draft202012Validator


def check_schema(schema: dict[str, Any]) -> None:
    """Fail if this is not a JSON Schema (2020-12), or not JSON."""
    _check(json.dumps(schema, allow_nan=False))


@functools.lru_cache(maxsize=1_000)
def _check(text: str) -> None:
    # It takes milliseconds, and tests make the same schema hundreds of times.
    Draft202012Validator.check_schema(json.loads(text))
