"""``%mcp call FILE.ipynb``: reads a recording, and shows it while its calls are made again.

Runs on the kernel's main thread, inside the user's cell. The verb makes the calls. Everything in
the file is untrusted data: only the texts of its notes and results are shown, escaped, and none of
its code runs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert

from mcp_notebook.content import Result
from mcp_notebook.errors import RecordingError
from mcp_notebook.kernel.notebook.output_html import (
    render_box,
    render_code,
    render_soft,
    render_text,
)
from mcp_notebook.kernel.notebook.recording.call_cells import (
    KEY,
    RecordedCall,
    describe_call,
    holds_secret,
    make_outputs,
)
from mcp_notebook.text.wording import make_printable

_MAX_CALL = 200
"""Characters of a call."""
_MAX_RESULT = 2_000
"""Characters of a recorded result that is shown."""
_BOLD = re.compile(r"\*\*([^*]+)\*\*")


class Note(Struct, frozen=True):
    """A Markdown cell."""

    text: str


class Output(Struct, frozen=True):
    """A part of a result, in nbformat's form."""

    output_type: str = ""
    data: dict[str, Any] = {}
    """By MIME type."""
    traceback: list[str] = []
    """The lines of an error."""

    @property
    def text(self) -> str:
        """Its text, or a word for a picture."""
        is_error = self.output_type == "error"
        return "\n".join(self.traceback) if is_error else _join(self.data.get("text/plain", ""))

    @property
    def is_drawn(self) -> bool:
        """Whether it is a picture or a sound."""
        return any(kind.startswith(("image/", "audio/")) for kind in self.data)


class RecordedCell(Struct, frozen=True):
    """A call with its result."""

    call: RecordedCall
    outputs: list[Output]
    """The result."""

    @property
    def obstacle(self) -> str | None:
        """Why the call is not made again; None if it is."""
        if self.call.never_ran:
            return "Not called again: the tool did not run."
        if not self.call.is_complete or holds_secret(self.call.arguments):
            return "Not called again: some of its arguments were not recorded."
        return None


def read_recording(path: Path) -> list[Note | RecordedCell]:
    """Return the notes and calls of a recording.

    Raises:
        RecordingError: The file cannot be read, or has no recorded calls.
    """
    try:
        cells = json.loads(path.read_bytes())["cells"]
        steps = [step for cell in cells for step in read_cell(cell)]
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise RecordingError(f"{path} is not a notebook.") from None
    if not any(isinstance(step, RecordedCell) for step in steps):
        raise RecordingError(
            f"{path} has no recorded calls. `%mcp record` writes files that have some."
        )
    return steps


def read_cell(cell: Mapping[str, Any]) -> Iterator[Note | RecordedCell]:
    """Yield the note or call in a cell in nbformat's form; nothing of any other cell."""
    if cell["cell_type"] == "markdown":
        yield Note(_join(cell["source"]))
    recorded = cell["metadata"].get(KEY)
    if cell["cell_type"] != "code" or not isinstance(recorded, dict):
        return
    try:
        arguments = recorded["arguments"]
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        call = convert(recorded | {"arguments": arguments}, RecordedCall)
        yield RecordedCell(call, convert(cell["outputs"], list[Output]))
    except (KeyError, ValueError, ValidationError):
        return  # not a call, or one of another version


def _join(text: Any) -> str:
    """Return a text, which Jupyter writes as a list of lines."""
    return "".join(text) if isinstance(text, list) else str(text)


# -- what is shown ---------------------------------------------------------------------------------


def build_note(text: str) -> dict[str, str]:
    """Return a note as a MIME bundle; of Markdown, only headings, bold text and code count."""
    blocks = [block.strip() for block in make_printable(text).split("\n\n")]
    html = "".join(map(_render_block, filter(None, blocks)))
    return {"text/plain": "\n\n".join(blocks), "text/html": render_box(html)}


def _render_block(block: str) -> str:
    heading, is_heading = block.lstrip("#").strip(), block.startswith("#")
    html = f"<b>{render_text(heading)}</b>" if is_heading else render_code(block)
    html = _BOLD.sub(r"<b>\1</b>", html)
    return f"<div style='margin:.4em 0;white-space:pre-line'>{html}</div>"


def build_call(cell: RecordedCell) -> dict[str, str]:
    """Return the line above the result of a call, as a MIME bundle."""
    client = make_printable(cell.call.client)
    call = describe_call(cell.call.tool, cell.call.arguments, _MAX_CALL)
    html = f"<b>{render_text(client)}</b> called <code>{render_text(call)}</code>"
    return {"text/plain": f"{client} called {call}", "text/html": render_box(html)}


def build_comparison(cell: RecordedCell, result: Result | None) -> dict[str, str]:
    """Return the line below the result of a call, as a MIME bundle.

    Texts are compared. Pictures are not: no two machines draw the same bytes.

    Args:
        cell: The recorded call.
        result: Its result now; None if it was not made again.
    """
    day = f"{cell.call.time:%Y-%m-%d}"
    recorded = [output.text for output in cell.outputs]
    if result is None:
        said = f"{cell.obstacle} On {day}, the result was:"
    elif _list_texts(result, cell.call.state) != recorded:
        said = f"Called again now. On {day}, the result was:"
    elif any(output.is_drawn for output in cell.outputs):
        said, recorded = f"Called again now; the picture of {day} is in the file.", []
    else:
        said, recorded = f"Called again now, with the same result as on {day}.", []
    text = make_printable("\n".join(recorded))[:_MAX_RESULT]
    html = render_soft(f"&#8627; {render_text(said)}")
    if text:
        html += f"<pre style='margin:.3em 0;white-space:pre-wrap'>{render_text(text)}</pre>"
    return {"text/plain": f"{said}\n{text}".rstrip(), "text/html": render_box(html)}


def _list_texts(result: Result, state: str) -> list[str]:
    return [output.text for output in convert(make_outputs(result, state), list[Output])]
