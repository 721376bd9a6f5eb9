"""A call as a cell of a notebook: its code, its outputs, and in its metadata what it was.

The kernel writes such cells (``%mcp record``). Pure; made of plain JSON values in nbformat's form,
version 4.5, as the kernel side does without nbformat.
"""

import hashlib
import json
import keyword
import math
import re
import reprlib
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct, structs, to_builtins

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.results.table_html import format_table_html
from mcp_notebook.text.redaction import MASK
from mcp_notebook.text.wording import make_printable

KEY = "mcp_notebook"
"""Where the metadata of a notebook, and of its cells, have ours."""
NBFORMAT = {"nbformat": 4, "nbformat_minor": 5}
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_MAX_DEPTH = 50
"""Levels of a value that is written as Python, whose parser stops at 200 brackets."""
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_EXPANDED = re.compile(r"[!${}]")
"""The characters that IPython expands in a magic's line (`InteractiveShell.var_expand`)."""
_NEVER_RAN = "The tool did not run."
_SECRETS = "# Secrets are not recorded: put yours here."
_TABLE = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)
_CONVERSIONS = frozenset({"$ref", "format", "prefixItems", "uniqueItems", "contentEncoding"})
"""Keywords of parameters whose functions get other values than JSON's: dates, models, sets."""

Cell: TypeAlias = dict[str, Any]
"""A cell of a notebook in nbformat's form."""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """The call in a cell's metadata."""

    tool: str
    """The tool's name in its notebook."""
    arguments: dict[str, Any]
    """The arguments as the client sent them, with `redaction.MASK` in place of secrets. In the
    metadata, they are a string of JSON if a notebook or Python cannot represent them otherwise."""
    is_complete: bool = True
    """Whether all arguments are there."""
    client: str
    """The program that called, with its version."""
    time: datetime
    """When the call came."""
    state: str
    """How it ended: one of the names of `kernel.calls.call.CallState`."""
    never_ran: bool = False
    """Whether it was refused or stopped before the tool's function began."""
    queue_seconds: float = 0
    """How long it waited for its turn."""
    run_seconds: float = 0
    """How long it ran."""
    source_hash: str | None = None
    """SHA-256 of the source of the tool that ran; None if it has none."""
    version: str
    """The version of mcp-notebook."""


def make_call_cell(
    call: RecordedCall,
    result: Result,
    cell_id: str,
    function_schema: Mapping[str, Any] | None = None,
) -> Cell:
    """Return a call and its result as a code cell.

    The code of a call that never ran is a comment: running all cells repeats what happened, and no
    call that the notebook refused.

    Args:
        call: The call.
        result: The result that its client got.
        cell_id: Of the cell; unique in its notebook.
        function_schema: As for `format_call`.
    """
    source = format_call(call.tool, call.arguments, function_schema)
    if call.never_ran:
        source = "\n".join(f"# {line}" for line in [_NEVER_RAN, *source.splitlines()])
    metadata = to_builtins(structs.replace(call, arguments={}))
    metadata["arguments"] = _pack_arguments(call.arguments)
    if call.source_hash is None:
        del metadata["source_hash"]
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": cell_id,
        "metadata": {KEY: metadata},
        "outputs": make_outputs(result, call.state),
        "source": source,
    }


def _pack_arguments(arguments: dict[str, Any]) -> dict[str, Any] | str:
    # A notebook is UTF-8 and the JSON of browsers: no NaN, no lone surrogates.
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return json.dumps(arguments)
    return arguments if _has_literal(arguments) else json.dumps(arguments)


# -- the code of a call ----------------------------------------------------------------------------


def format_call(
    tool: str, arguments: Mapping[str, Any], function_schema: Mapping[str, Any] | None = None
) -> str:
    """Return the code that makes a call in the notebook of its tool.

    Name and arguments are untrusted text that must not become code. The returned code is ASCII: one
    call whose arguments are literals, or a comment if no tool can have that name.

    It is a call of the function where a cell can make it with the values as they are, else a line
    of ``%mcp call``, which converts them as for a client. NaN and the infinities have no literal in
    Python, so they are written as JSON on such a line. A secret was left out: three dots stand in
    its place, and ``%mcp call`` refuses a line with them.

    Args:
        tool: The tool's name.
        arguments: As the client sent them.
        function_schema: The tool's input schema if its function can be called in a cell by the
            tool's name; None if it cannot.
    """
    if not _TOOL_NAME.fullmatch(tool):
        return f"# No tool can have the name {tool!a}."
    if function_schema is not None and _is_python(tool, arguments, function_schema):
        # More than one line, or IPython would take the name of a magic as that magic ("automagic"),
        # and `cat`, for example, gives the rest of its line to a shell.
        words = [f"    {name}={_format_value(value)},\n" for name, value in arguments.items()]
        code = f"{tool}(\n{''.join(words)})"
    else:
        code = f"%mcp call {tool} {_JSON_TEXT.sub(_format_text, json.dumps(arguments))}"
    return f"{_SECRETS}\n{code}" if holds_secret(arguments) else code


def describe_call(tool: str, arguments: Mapping[str, Any], most: int) -> str:
    """Return a call on one line as people read it: ``rain(city='Seattle')``.

    It is not to be run: what Python does not take as a name is in quotes, what is cut has dots.

    Args:
        tool: The tool's name.
        arguments: As the client sent them.
        most: Characters of the line.
    """
    shown = _Shown(most)
    words = [f"{_show_name(name)}={shown.repr(value)}" for name, value in arguments.items()]
    text = make_printable(f"{_show_name(tool)}({', '.join(words)})")
    return text if len(text) <= most else f"{text[: most - 4]}...)"


class _Shown(reprlib.Repr):
    """Writes values of JSON, cut.

    A long text is cut at its end: cut in the middle, it might end at a quote of its own.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = most

    def repr_str(self, text: str, _level: int) -> str:
        return repr(text) if len(text) <= self.maxstring else f"{text[: self.maxstring]!r}..."


def _show_name(name: str) -> str:
    return name if name.isidentifier() or _TOOL_NAME.fullmatch(name) else repr(name)


def holds_secret(value: Any) -> bool:
    """Return whether a secret was left out of a recorded argument, at any depth."""
    return MASK in json.dumps(value)


def _is_python(tool: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Return whether a call can be written as one of the function."""
    properties = schema.get("properties", {})
    return (
        all(map(_is_name, [tool, *arguments]))
        and not any(_needs_conversion(properties.get(name)) for name in arguments)
        and _has_literal(arguments)
    )


def _is_name(text: str) -> bool:
    is_identifier = text.isascii() and text.isidentifier()
    return is_identifier and not keyword.iskeyword(text) and text != "__debug__"


def _has_literal(value: Any, levels: int = _MAX_DEPTH) -> bool:
    """Return whether Python reads a JSON value that is written as a literal."""
    if isinstance(value, float):
        return math.isfinite(value)
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_has_literal(item, levels - 1) for item in items)


class _Gap:
    """Stands for a secret that was left out."""

    def __repr__(self) -> str:
        return "..."


def _format_value(value: Any) -> str:
    return ascii(_mark_gaps(value))


def _mark_gaps(value: Any) -> Any:
    match value:
        case dict():
            return {name: _mark_gaps(item) for name, item in value.items()}
        case list():
            return list(map(_mark_gaps, value))
    return _Gap() if value == MASK else value


def _format_text(text: re.Match[str]) -> str:
    """Return a JSON text as it is written: a secret that was left out is a gap, and no JSON."""
    is_name = text.string.startswith(":", text.end())
    return "..." if text[0] == f'"{MASK}"' and not is_name else _escape_text(text)


def _escape_text(text: re.Match[str]) -> str:
    """Escape the characters in a JSON text that IPython would expand.

    `%mcp` turns this expansion off; the escapes are for other ways to run the line. The braces of
    objects remain: IPython evaluates the text between the outer ones, which is not a valid
    expression, because it begins with a string and a colon.
    """
    return _EXPANDED.sub(lambda match: f"\\u{ord(match[0]):04x}", text[0])


def _needs_conversion(schema: Any) -> bool:
    """Return whether a function gets another value than the JSON value of this parameter."""
    if isinstance(schema, Mapping):
        return not _CONVERSIONS.isdisjoint(schema) or any(map(_needs_conversion, schema.values()))
    return isinstance(schema, list) and any(map(_needs_conversion, schema))


# -- outputs ---------------------------------------------------------------------------------------


def make_outputs(result: Result, state: str = "failed") -> list[dict[str, Any]]:
    """Return the result that a client got as the outputs of a cell.

    Links to originals have no address here: it ends with the kernel.

    Args:
        result: The result that the client got.
        state: How the call ended, for an error.
    """
    if result.is_error:
        texts = [block.text for block in result.content if isinstance(block, Text)]
        text = "\n".join(texts)
        error = {
            "output_type": "error",
            "ename": f"Call {state}",
            "evalue": text.partition("\n")[0],
            "traceback": text.splitlines(),
        }
        others = [block for block in result.content if not isinstance(block, Text)]
        return [*map(_make_display, others), error]
    if not result.content and result.structured is not None:
        return [_display(json.dumps(result.structured, indent=2, ensure_ascii=False, default=str))]
    return [_make_display(block) for block in result.content]


def _make_display(block: ContentBlock) -> dict[str, Any]:
    match block:
        case Text(text=text):
            html = format_table_html(text)
            if html is not None:
                return _display(text, {"text/html": make_printable(html)})
            return _display(text, {"text/markdown": text} if _TABLE.search(text) else {})
        case Image() | Audio():
            kind = type(block).__name__.lower()
            data = b64encode(block.data).decode()
            return _display(f"<{kind}, {block.mime_type}>", {block.mime_type: data})
        case Resource(data=data):
            return _display(
                data if isinstance(data, str) else _describe_bytes(block.mime_type, data)
            )
        case ResourceLink():
            return _display(f"<link: {block.about}>")


def _describe_bytes(mime_type: str, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    return f"<{mime_type}, {len(data):,} bytes, SHA-256 {digest}>"


def _display(text: str, data: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "data": {"text/plain": text, **(data or {})},
        "metadata": {},
    }


def format_time(seconds: float) -> datetime:
    """Return a time in seconds since the epoch as the metadata have it."""
    return datetime.fromtimestamp(seconds, UTC)
