"""The HTTP headers that repeat arguments of a call: those that its tool's schema marks.

Pure. A property with the keyword ``x-mcp-header`` is repeated in ``Mcp-Param-<its value>``. MCP
says where it may be, and clients leave out a tool whose schema has it elsewhere:
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_notebook.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_notebook.protocol.headers import decode_value, encode_value
from mcp_notebook.protocol.methods import CALL
from mcp_notebook.schema_keywords import DEFINITIONS, LISTS, NAMED, SINGLE

HEADER_KEY = "x-mcp-header"
"""Keyword of a property whose value HTTP clients repeat in a header."""
HEADER_TYPES = ("string", "integer", "boolean")
"""Types that such a property may have; MCP forbids the others."""
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""The syntax of a header's name (RFC 9110, 5.6.2)."""
PREFIX = "mcp-param-"
_NUMBER = re.compile(r"(-?[0-9]+)(?:\.0+)?")


@dataclass(frozen=True)
class ParameterHeader:
    """A header that repeats an argument."""

    name: str
    """Its name, in lower case."""
    path: tuple[str, ...]
    """The properties that lead to the argument."""
    is_integer: bool

    def find_value(self, arguments: Any) -> Any:
        """Return the argument's value; None if there is none."""
        for key in self.path:
            arguments = arguments.get(key) if isinstance(arguments, Mapping) else None
        return arguments

    def is_equal(self, value: Any, text: str) -> bool:
        """Return whether a header's text stands for an argument's value."""
        number = _NUMBER.fullmatch(text) if self.is_integer else None
        if number is not None and isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return int(number[1]) == value
            except ValueError:  # too many digits
                return False
        return text == _write(value)


def list_parameter_headers(schema: Any) -> Sequence[ParameterHeader]:
    """Return the headers of a tool's input schema; none if one of them is invalid."""
    found: dict[str, ParameterHeader] = {}
    for path, position in walk_positions(schema):
        if HEADER_KEY not in position:
            continue
        name, kind = position[HEADER_KEY], position.get("type")
        is_valid = isinstance(name, str) and TOKEN.fullmatch(name) and kind in HEADER_TYPES
        key = f"{PREFIX}{name}".lower()
        if not path or not is_valid or key in found:
            return ()
        found[key] = ParameterHeader(key, path, kind == "integer")
    return tuple(found.values())


def write_parameter_headers(
    headers: Iterable[ParameterHeader], arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the headers of a call with these arguments."""
    texts = {header.name: _write(header.find_value(arguments)) for header in headers}
    return {name: encode_value(text) for name, text in texts.items() if text is not None}


class ParameterHeaders:
    """The headers of calls that a client knows from lists of tools."""

    def __init__(self) -> None:
        self._headers: dict[str, Sequence[ParameterHeader]] = {}

    def learn(self, result: Any) -> None:
        """Learn from the result of ``tools/list``, which may be anything."""
        tools = result.get("tools") if isinstance(result, Mapping) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._headers[tool["name"]] = list_parameter_headers(tool.get("inputSchema"))

    def list_headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers for the arguments of a call; {} for other requests."""
        arguments = params.get("arguments")
        known = self._headers.get(str(params.get("name")), ())
        if method != CALL or not isinstance(arguments, Mapping):
            return {}
        return write_parameter_headers(known, arguments)


def check_parameter_headers(
    headers: Iterable[ParameterHeader],
    arguments: Mapping[str, Any],
    fields: Iterable[tuple[bytes, bytes]],
) -> None:
    """Check that the headers of a call repeat its arguments.

    Args:
        headers: Of the tool's schema.
        arguments: The call's arguments.
        fields: The request's headers as they came.

    Raises:
        ProtocolError: A header is missing, differs, came twice, or has no argument.
    """
    texts = {str(name, "latin-1"): str(value, "latin-1") for name, value in fields}
    counts = Counter(name for name, _ in fields)
    for header in headers:
        value = header.find_value(arguments)
        raw, argument = texts.get(header.name), ".".join(header.path)
        problem: str | None
        if counts[header.name.encode()] > 1:
            problem = "came more than once"
        elif _write(value) is None:
            problem = None if raw is None else f"has no argument {argument!r} in the body"
        elif raw is None:
            problem = f"is missing: it repeats the argument {argument!r}"
        else:
            text = decode_value(raw)
            is_same = text is not None and header.is_equal(value, text)
            problem = None if is_same else f"differs from the argument {argument!r}"
        if problem is not None:
            raise ProtocolError(HEADER_MISMATCH, f"The header {header.name} {problem}.")


def walk_positions(root: Any) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield each schema within a schema, with its chain of properties from the root.

    The chain is None below any keyword other than ``properties``. References are not followed. A
    stack replaces recursion, so depth is not limited.
    """
    stack: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        # In reverse, since the stack is last in, first out.
        for keyword, value in reversed(node.items()):
            if keyword == "properties" and isinstance(value, dict):
                stack += [
                    (None if path is None else (*path, name), item)
                    for name, item in reversed(value.items())
                ]
            elif keyword in SINGLE or keyword == "contentSchema":
                stack.append((None, value))
            elif keyword in LISTS and isinstance(value, list):
                stack += [(None, item) for item in value]
            elif keyword in (*NAMED, *DEFINITIONS) and isinstance(value, dict):
                stack += [(None, item) for item in value.values()]


def _write(value: Any) -> str | None:
    """Return the text of a value in a header; None if it has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, str | int | float) else None
    except ValueError:  # an int of too many digits
        return None
