"""Arguments from a shell: ``--arg name=value`` -> the value that the tool's input schema expects.

Pure; runs in the process of ``mcp-notebook call``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_notebook.errors import InvalidArguments


def read_arguments(texts: Sequence[tuple[str, str]], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Turn texts into the arguments of a tool.

    Args:
        texts: Pairs of a parameter's name and the text of its value.
        schema: The tool's input schema.

    Raises:
        InvalidArguments: A parameter is named twice.
    """
    arguments: dict[str, Any] = {}
    for name, text in texts:
        if name in arguments:
            raise InvalidArguments(
                f"The argument {name!r} is given twice. Use --json to pass a list."
            )
        parameter = schema.get("properties", {}).get(name, {})
        arguments[name] = _parse_value(text, set(_list_types(parameter, schema)))
    return arguments


def _parse_value(text: str, allowed: set[str]) -> Any:
    """Return the value of a text, given the JSON types that are allowed (none: any type)."""
    if allowed == {"string"}:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # If strings are allowed, too, `5` could be either: a value of an allowed type comes first.
    return value if "string" not in allowed or _name_types(value) & allowed else text


def _name_types(value: Any) -> set[str]:
    """Return the names of the JSON types of a value."""
    kinds: tuple[tuple[Any, set[str]], ...] = (
        (bool, {"boolean"}),  # before int, its base class
        (int, {"integer", "number"}),
        (float, {"number"}),
        (str, {"string"}),
        (list, {"array"}),
        (dict, {"object"}),
        (type(None), {"null"}),
    )
    return next(names for kind, names in kinds if isinstance(value, kind))


def _list_types(
    schema: Any, root: Mapping[str, Any], visited: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the JSON types that a schema allows; none if it does not restrict them."""
    if not isinstance(schema, Mapping):
        return
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and name not in visited:  # schemas may be recursive
        visited |= {name}
        yield from _list_types(root.get("$defs", {}).get(name), root, visited)
    types = schema.get("type", [])
    yield from [types] if isinstance(types, str) else types
    if not types:
        for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
            yield from _name_types(value)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(keyword, ()):
            yield from _list_types(part, root, visited)
