"""Marks secret parameters in JSON Schemas, and removes their values from strings.

Runs in the user's kernel: marks at definition, the rest wherever a call runs. Pure. How a schema
marks a secret is defined in `mcp_notebook.text.redaction`.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic import Secret as Secret  # noqa: PLC0414 - `mcp_notebook.Secret`
from pydantic import TypeAdapter, types

from mcp_notebook.schema_keywords import walk_schema
from mcp_notebook.text.redaction import MASK, has_secrets, redact_arguments

_MIN_LENGTH = 4
"""Characters of the shortest secret that is removed: a shorter one is in any text by chance."""
_MIN_LINE = 16
"""Characters of the shortest line of a multi-line secret that is removed by itself."""


def mark_secret(core: Mapping[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a type, marked as secret if the type is a `Secret`.

    pydantic marks only its ``SecretStr`` and ``SecretBytes``.

    Args:
        core: pydantic's schema of the type.
        plain: The type's JSON Schema.
    """
    if not is_secret(core):
        return plain
    text = {"format": "password"} if plain.get("type") == "string" else {}
    return {**plain, **text, "writeOnly": True}


def is_secret(core: Mapping[str, Any]) -> bool:
    """Return whether a core schema is that of a `Secret`."""
    serializer = core.get("serialization", {}).get("function")
    # Few types have a serializer of pydantic's: without one, that of `Secret` need not be built.
    return getattr(serializer, "__module__", "") == types.__name__ and (
        serializer is _find_serializer()
    )


@cache
def _find_serializer() -> Any:
    """Return pydantic's serializer of `Secret`, the only trace of the type in a core schema."""
    schema: Any = TypeAdapter(Secret[str]).core_schema
    return schema["serialization"]["function"]


def drop_secret_defaults(root: dict[str, Any]) -> None:
    """Remove the defaults that contain secrets from a JSON Schema."""
    for item in walk_schema(root if has_secrets(root, root) else None):
        if "default" in item and has_secrets(item, root):
            del item["default"]


# -- secrets in strings ----------------------------------------------------------------------------


def list_secrets(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the forms in which the secrets of a call may appear in strings, longest first.

    Args:
        schema: The tool's input schema.
        arguments: As the client sent them.
    """
    if not has_secrets(schema, schema):
        return ()
    texts: set[str] = set()
    for text in _list_masked(arguments, redact_arguments(schema, arguments)):
        texts.update(_list_forms(text))
    return tuple(sorted((text for text in texts if len(text) >= _MIN_LENGTH), key=_by_length))


def scrub(text: str, secrets: Iterable[str]) -> str:
    """Return a string with the secrets replaced by asterisks.

    Args:
        text: Any message.
        secrets: From `list_secrets`.
    """
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _list_masked(value: Any, redacted: Any) -> Iterator[str]:
    """Yield the strings and numbers that are masked."""
    if redacted == MASK:
        yield from _list_leaves(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _list_masked(item, redacted[key])
    elif isinstance(value, list):
        for item, other in zip(value, redacted, strict=True):
            yield from _list_masked(item, other)


def _list_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _list_leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_leaves(item)
    elif isinstance(value, str):
        yield value
        if value.lstrip().startswith(("[", "{")):  # it may have been sent as text
            with suppress(ValueError, RecursionError):
                yield from _list_leaves(json.loads(value))
    elif isinstance(value, float) or type(value) is int:
        yield repr(value)


def _list_forms(secret: str) -> Iterator[str]:
    """Yield the forms of a secret in messages: plain, escaped, URL-encoded, decoded from base64."""
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield from (line for line in secret.splitlines() if len(line) >= _MIN_LINE)
    with suppress(ValueError):
        yield base64.b64decode(secret, validate=True).decode()  # bytes are sent as this


def _by_length(text: str) -> tuple[int, str]:
    return -len(text), text
