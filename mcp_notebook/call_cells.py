"""A call as a cell of a notebook: a line of Python, its outputs, and in its metadata what it was.

The kernel writes such cells (``%mcp record``, ``%mcp insert``), and ``mcp-notebook replay`` reads
them. Pure, in every process; made of plain JSON values in nbformat's form, version 4.5, as the
kernel side does without nbformat.
"""

import hashlib
import json
import keyword
import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.redaction import MASK

KEY = "mcp_notebook"
"""Where the metadata of a notebook, and of its cells, have ours."""
NBFORMAT = {"nbformat": 4, "nbformat_minor": 5}
_MAX_LINE = 88
"""Characters of a call on one line, as Black has it."""
_SECRETS = "# Secrets are not recorded: put yours here."
_TABLE = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)
_CONVERSIONS = frozenset({"$ref", "format", "prefixItems", "uniqueItems", "contentEncoding"})
"""Keywords of parameters whose functions get other values than JSON's: dates, models, sets."""

Cell: TypeAlias = dict[str, Any]
"""A cell of a notebook in nbformat's form."""


class RecordedCall(BaseModel):
    """What the metadata of a cell say of its call."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tool: str
    """The tool's name in its notebook."""
    arguments: dict[str, Any]
    """As the client sent them, with `redaction.MASK` in place of secrets."""
    is_complete: bool = True
    """Whether all arguments are there."""
    client: str
    """The program that called, with its version."""
    time: datetime
    """When the call came."""
    state: str
    """How it ended: one of the names of `kernel.calls.call.CallState`."""
    queue_seconds: float = 0
    """How long it waited for its turn."""
    run_seconds: float = 0
    """How long it ran."""
    source_hash: str | None = None
    """SHA-256 of the source of the tool that ran; None if it has none."""
    structured_hash: str | None = None
    """SHA-256 of the structured content; None if there was none."""
    version: str
    """The version of mcp-notebook."""


@dataclass(frozen=True)
class RecordedCell:
    """A recorded call with what it returned."""

    number: int
    """Its place among the recorded calls of the file, from 1."""
    call: RecordedCall
    outputs: list[dict[str, Any]]
    """In nbformat's form."""


def make_call_cell(call: RecordedCall, result: Result, cell_id: str, schema: Any = None) -> Cell:
    """Return a call and its result as a code cell.

    Args:
        call: The call.
        result: What its client got.
        cell_id: Of the cell; unique in its notebook.
        schema: The tool's input schema, if it is known.
    """
    metadata = call.model_dump(mode="json", exclude_none=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": cell_id,
        "metadata": {KEY: metadata},
        "outputs": make_outputs(result, call.state),
        "source": format_call(call.tool, call.arguments, schema),
    }


def read_call_cells(notebook: Mapping[str, Any]) -> Iterator[RecordedCell]:
    """Yield the recorded calls of a notebook; cells of other kinds are passed over.

    Args:
        notebook: In nbformat's form, checked by nbformat.
    """
    number = 0
    for cell in notebook["cells"]:
        metadata = cell["metadata"].get(KEY)
        if cell["cell_type"] != "code" or metadata is None:
            continue
        try:
            call = RecordedCall.model_validate(metadata)
        except ValidationError:
            continue
        number += 1
        yield RecordedCell(number, call, cell["outputs"])


def hash_structured(result: Result) -> str | None:
    """Return the SHA-256 of a result's structured content; None if it has none."""
    if result.structured is None:
        return None
    text = json.dumps(result.structured, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


# -- the line of Python ----------------------------------------------------------------------------


def format_call(tool: str, arguments: Mapping[str, Any], schema: Any = None) -> str:
    """Return the code that makes a call in the notebook of its tool.

    It is a call of the function where its name and values can stand in Python as they are, else a
    line of ``%mcp call``, which converts them as for a client.

    Args:
        tool: The tool's name.
        arguments: As the client sent them.
        schema: The tool's input schema, if it is known.
    """
    names = tool.split(".")
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    is_python = all(map(_is_name, [*names, *arguments])) and not any(
        _needs_conversion(properties.get(name)) for name in arguments
    )
    if is_python:
        words = [f"{name}={_format_value(value)}" for name, value in arguments.items()]
        code = f"{tool}({', '.join(words)})"
        if len(code) > _MAX_LINE:
            code = f"{tool}(\n" + "".join(f"    {word},\n" for word in words) + ")"
    else:
        code = f"%mcp call {tool} {json.dumps(arguments, ensure_ascii=False)}"
    return f"{_SECRETS}\n{code}" if holds_secret(arguments) else code


def holds_secret(value: Any) -> bool:
    """Tell whether a secret was left out of a recorded argument, at any depth."""
    return MASK in json.dumps(value)


def _is_name(text: str) -> bool:
    # Python reads names in their NFKC form.
    is_itself = unicodedata.normalize("NFKC", text) == text
    return text.isidentifier() and is_itself and not keyword.iskeyword(text)


def _format_value(value: Any) -> str:
    return "..." if value == MASK else repr(value)


def _needs_conversion(schema: Any) -> bool:
    """Return whether a function gets another value than the JSON value of this parameter."""
    if isinstance(schema, Mapping):
        return not _CONVERSIONS.isdisjoint(schema) or any(map(_needs_conversion, schema.values()))
    return isinstance(schema, list) and any(map(_needs_conversion, schema))


# -- outputs ---------------------------------------------------------------------------------------


def make_outputs(result: Result, state: str = "failed") -> list[dict[str, Any]]:
    """Return what a client got as the outputs of a cell.

    Links to originals have no address here: it ends with the kernel.

    Args:
        result: What the client got.
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
