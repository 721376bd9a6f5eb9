"""Markers for MCP that authors write into ``Annotated``: `Header` and `Hidden`.

Runs in the user's kernel, at definition. Pure. `Header` puts ``x-mcp-header`` into a parameter's
schema; `find_header_problem` checks the headers of any schema by MCP's rules.
"""

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.protocol.parameter_headers import (
    HEADER_KEY,
    HEADER_TYPES,
    TOKEN,
    walk_positions,
)
from mcp_notebook.text.redaction import has_secrets


@dataclass(frozen=True)
class Header:
    """Marks a parameter whose value HTTP clients repeat in the header ``Mcp-Param-<name>``.

    ::

        def sales(region: Annotated[str, Header("Region")]): ...

    A gateway can then route by it without reading the body. For ``str``, ``int`` and ``bool``
    parameters (also ``Literal`` and enumerations of them); not for secrets.

    Args:
        name: The last part of the header's name; each name once in a tool.
    """

    name: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Add the keyword to the schema that pydantic makes of the type."""
        schema: dict[str, Any] = handler(core_schema)
        # Clients do not see the type behind a reference, so the target of a plain type replaces it.
        # A model stays a reference, and is refused: clients would not find a header there.
        if "$ref" in schema:
            meant = handler.resolve_ref_schema(schema)
            if meant.get("type") in HEADER_TYPES:
                schema = {**meant, **{key: schema[key] for key in schema if key != "$ref"}}
        return {**schema, HEADER_KEY: self.name}


class Hidden:
    """Marks a parameter that clients neither see nor set: the function gets its default.

    ::

        def sales(region: str, source: Annotated[Connection, Hidden] = warehouse): ...

    Its type may be anything. It is only a mark and cannot be instantiated.

    Raises:
        DefinitionError: It is called, as in ``source=Hidden(warehouse)``.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        # A parameter that has the mark never gets to pydantic.
        raise TypeError("`Hidden` is for parameters of the function, not for a model's fields")

    def __init__(self, *_default: Any) -> None:
        raise DefinitionError(
            "`Hidden` cannot be a default: a direct call of the function would get it as "
            "a value. Write it into the type hint, `limit: Annotated[int, Hidden] = 10`."
        )


def is_hidden(hint: Any) -> bool:
    """Return whether a resolved type hint has the marker, also within a union."""
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        return any(extra is Hidden for extra in extras) or is_hidden(base)
    if get_origin(hint) in (Union, types.UnionType):
        return any(is_hidden(item) for item in get_args(hint))
    return hint is Hidden


# -- headers ---------------------------------------------------------------------------------------


def find_header_problem(schema: Mapping[str, Any]) -> str | None:
    """Return the problem with the ``x-mcp-header`` keywords of a schema, if any.

    HTTP clients drop a tool with an invalid one.
    """
    places: dict[str, str] = {}
    for path, position in walk_positions(schema):
        if HEADER_KEY not in position:
            continue
        header = position[HEADER_KEY]
        quoted = format_value(header)
        if not path:
            return (
                f"the header {quoted} is inside a type (an optional one, a list, a model), where "
                "clients cannot find it: mark a parameter that is a plain str, int or bool"
            )
        where = ".".join(path)
        if not isinstance(header, str) or not TOKEN.fullmatch(header):
            return (
                f"the header of `{where}`, {quoted}, is not a valid name: use letters, digits and "
                "`-`"
            )
        kind = position.get("type")
        if not isinstance(kind, str) or kind not in HEADER_TYPES:
            return (
                f"`{where}` has the header {quoted}, but MCP allows one for a plain str, int or "
                "bool only (not for one that may be None): change its type, or leave the header out"
            )
        if has_secrets(position, schema):
            return (
                f"`{where}` is a secret and has the header {quoted}, but proxies write headers to "
                "their logs: leave the header out"
            )
        if header.lower() in places:
            return (
                f"`{places[header.lower()]}` and `{where}` have the same header {quoted} (case "
                "does not count): give one another name"
            )
        places[header.lower()] = where
    return None
