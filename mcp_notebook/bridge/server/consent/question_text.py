"""The text that a person reads before allowing a call: the tool, its arguments, and who asks.

Runs on the bridge's event loop, and in the process of ``mcp-notebook call``; pure. The caller
chooses the arguments and the name of the client's program, and may try to make the question look
like a different one. So they are quoted as JSON, each on its own line; characters that break lines,
change the direction of text, stack marks or are invisible are escaped.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.text.redaction import redact_arguments

MAX_ARGUMENTS = 30
"""Maximum number of arguments that are shown; those that the tool declares come first."""
MAX_CHARS = 4_000
"""Maximum characters of all arguments together, unless each is already cut to `MIN_VALUE`."""
MIN_VALUE = 200
"""Characters of one argument that are always shown."""
MAX_SUMMARY, MIN_IN_SUMMARY = 300, 40
"""The same two limits for the arguments on one line."""
MAX_NAME = 80
"""Maximum length of a name."""
MAX_CALLER = 1_200
"""Maximum length of the caller's name; cut shorter, two users of one issuer could look the same."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that count as printable but are invisible."""
_MAX_MARKS = 2
"""Maximum number of marks on one letter; more would cover the lines above and below."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a person is asked about."""

    tool: str
    """The tool's name, as clients see it."""
    notebook: str
    """The notebook's part of the tool's full name."""
    arguments: Mapping[str, Any]
    """The arguments that can be shown, without secrets."""
    parameters: tuple[str, ...] = ()
    """The names of the tool's parameters, in order."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The values of parameters without an argument, without secrets."""
    caller: str
    """The owner of the caller's token, or "stdio"."""
    alias: str = ""
    """The caller's name for people."""
    client: str = ""
    """The client's program, by its own account."""


def make_question(
    entry: CatalogEntry,
    arguments: Mapping[str, Any],
    *,
    caller: Caller,
    client: str = "",
) -> Question:
    """Return the question about a call.

    Args:
        entry: The tool.
        arguments: The call's arguments, with secrets.
        caller: The caller.
        client: The client's program.
    """
    schema = entry.tool.input_schema
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    defaults = {
        name: parameter["default"]
        for name, parameter in properties.items()
        if name not in arguments and isinstance(parameter, dict) and "default" in parameter
    }
    return Question(
        tool=entry.name,
        notebook=entry.notebook,
        arguments=redact_arguments(schema, arguments),
        parameters=tuple(properties),
        defaults=redact_arguments(schema, defaults),
        caller=caller.name,
        alias=caller.alias,
        client=client,
    )


def write_question(question: Question) -> str:
    """Return the question as lines of text."""
    alias = f", called {quote(question.alias, MAX_NAME)}" if question.alias else ""
    program = f", with the program {quote(question.client, MAX_NAME)}" if question.client else ""
    return "\n".join(
        [
            "Allow this call of a notebook's tool?",
            "",
            f"Tool: {_write_name(question.tool)}",
            f"Notebook: {_write_name(question.notebook)}",
            *_write_arguments(question),
            f"Asked by: {_write_name(question.caller, MAX_CALLER)}{alias}{program}",
        ]
    )


def write_title(question: Question) -> str:
    """Return the question on one line, without the arguments."""
    return f"Allow {_write_name(question.tool)}?"


def write_summary(question: Question) -> str:
    """Return the arguments on one line, each cut sooner than in the question's text."""
    arguments = ", ".join(_list_arguments(question, MAX_SUMMARY, MIN_IN_SUMMARY))
    return f"Arguments: {arguments or 'none'}"


def quote(value: Any, most: int) -> str:
    """Return a value as JSON on one line with visible characters, cut with a note on the rest.

    Args:
        value: Any JSON value.
        most: Characters after which it is cut.
    """
    text = json.dumps(value, ensure_ascii=False)
    parts: list[str] = []
    room = most
    for index, part in enumerate(_escape(text)):
        room -= len(part)
        if room < 0:
            parts.append(f"... ({len(text) - index:,} more characters are not shown)")
            break
        parts.append(part)
    return "".join(parts)


def _write_arguments(question: Question) -> list[str]:
    arguments = [f"    {argument}" for argument in _list_arguments(question, MAX_CHARS, MIN_VALUE)]
    return ["Arguments:", *arguments] if arguments else ["Arguments: none"]


def _list_arguments(question: Question, most: int, least: int) -> Iterator[str]:
    """Yield the arguments, each as an assignment, and then the defaults that will be used.

    Args:
        question: The question.
        most: Maximum characters of all values together, unless each is already cut to `least`.
        least: Characters of one value that are always shown.
    """
    names = question.arguments.keys()
    parameters = [name for name in question.parameters if name in names]
    ordered = [*parameters, *sorted(names - set(parameters))]
    for name in ordered[:MAX_ARGUMENTS]:
        value = quote(question.arguments[name], max(least, most // len(ordered)))
        yield f"{_write_name(name)} = {value}"
    if len(ordered) > MAX_ARGUMENTS:
        yield f"({len(ordered) - MAX_ARGUMENTS:,} more arguments are not shown)"
    for name, value in islice(question.defaults.items(), MAX_ARGUMENTS):
        yield f"{_write_name(name)} = {quote(value, least)} (default)"


def _write_name(name: str, most: int = MAX_NAME) -> str:
    return name if all(map(_PLAIN_NAME.fullmatch, name.split("."))) else quote(name, most)


def _escape(text: str) -> Iterator[str]:
    """Yield the characters of a text; those that could deceive are escaped as in JSON."""
    marks, previous = 0, ""
    for char in text:
        marks = marks + 1 if unicodedata.category(char).startswith("M") else 0
        is_run = char == previous == " "
        if char.isprintable() and char not in _BLANKS and marks <= _MAX_MARKS and not is_run:
            yield char
        else:
            units = char.encode("utf-16-be", "surrogatepass").hex()
            yield "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
        previous = char
