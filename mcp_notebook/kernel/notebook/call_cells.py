"""A call as a cell of a notebook: its code and its outputs.

``%mcp record`` inserts its code, and the side panel the whole cell. Pure; made of plain JSON values
in nbformat's form, version 4.5, as the kernel side does without nbformat.
"""

import hashlib
import json
import re
import reprlib
import secrets
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.text.redaction import MASK
from mcp_notebook.text.wording import make_printable

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_EXPANDED = re.compile(r"[!${}]")
"""The characters that IPython expands in a magic's line (`InteractiveShell.var_expand`)."""
_NEVER_RAN = "The tool did not run."
_SECRETS = "# Secrets are not recorded: put yours here."
_TABLE = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)
Cell: TypeAlias = dict[str, Any]
"""A cell of a notebook in nbformat's form."""


def make_cell(logged: LoggedCall, result: Result) -> Cell:
    """Return a call and its result as a code cell.

    The code of a call that never ran is a comment: running all cells repeats what happened, and no
    call that the notebook refused.

    Args:
        logged: The call.
        result: The result that its client got.
    """
    source = format_call(logged.tool, logged.arguments)
    if logged.never_ran:
        source = "\n".join(f"# {line}" for line in [_NEVER_RAN, *source.splitlines()])
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": secrets.token_hex(4),
        "metadata": {},
        "outputs": make_outputs(result, str(logged.state)),
        "source": source,
    }


# -- the code of a call ----------------------------------------------------------------------------


def format_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the line of ``%mcp call`` that makes a call again, for a cell.

    Name and arguments are untrusted text that must not become code. The returned code is ASCII: one
    call whose arguments are JSON, or a comment if no tool can have that name. A secret was left
    out: three dots stand in its place, and ``%mcp call`` refuses a line with them.

    Args:
        tool: The tool's name.
        arguments: As the client sent them.
    """
    if not _TOOL_NAME.fullmatch(tool):
        return f"# No tool can have the name {tool!a}."
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
