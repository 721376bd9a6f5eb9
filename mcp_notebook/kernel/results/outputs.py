"""The output of a call: printed text, displays, and its content blocks.

Runs in the user's kernel, on the thread of the call. `calls.capture` collects the outputs, and
`converter` puts their blocks before those of the returned value.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece, describe_text_original
from mcp_notebook.kernel.results.displays import render_display
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.text import clean_printed, describe_error
from mcp_notebook.text.wording import count


class Printed(Struct, frozen=True):
    """Text that a call wrote to stdout or stderr."""

    text: str


class Displayed(Struct, frozen=True):
    """A MIME bundle that a call displayed."""

    data: Mapping[str, Any]
    """MIME types and values; an image as bytes or as base64 text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


Output: TypeAlias = Printed | Displayed
Outputs: TypeAlias = Sequence[Output] | Callable[[], Sequence[Output]]
"""The outputs, or a function that returns them: converting a value may print and display more."""
_MAX_BLOCK = 8
"""Lines of the longest block that is folded: a warning with its code, or a traceback's end."""
_WARNED = re.compile(r"^\S*[\\/]ipykernel_\d+[\\/]\d+\.py:(\d+): (?=\w+Warning: )", re.MULTILINE)
"""Where a cell warned: the file is none that anybody could read."""
_LEAST_FOLDED = 200
"""Characters that must be saved: a few equal rows of numbers are data."""
RENDERED = "mcp_notebook.rendered"
"""Key in a display's metadata: its `RenderedDisplay`."""


class RenderedDisplay(Struct, frozen=True):
    """A value that was rendered as soon as it was displayed, since it may change later."""

    pieces: Sequence[Piece]


def render_outputs(outputs: Iterable[Output], budget: Budget) -> list[Piece]:
    """Render the outputs of a call in order, consecutive prints as one text.

    Args:
        outputs: What the call printed and displayed.
        budget: The limits of the result.
    """
    pieces: list[Piece] = []
    prints: list[str] = []
    for output in outputs:
        if isinstance(output, Printed):
            prints.append(output.text)
        else:
            pieces += _render_prints(prints)
            prints.clear()
            pieces += _render_displayed(output, budget)
    return [*pieces, *_render_prints(prints)] if prints else pieces


def _render_prints(prints: Sequence[str]) -> list[Piece]:
    text = _fold_repeats(_WARNED.sub(r"Line \1: ", clean_printed("".join(prints))).rstrip())
    return [Piece(Text(text), describe_text_original(text, what="output"))] if text else []


def _fold_repeats(text: str) -> str:
    """Fold lines that repeat at once, such as a warning in a loop, with the number of repeats.

    A block of up to `_MAX_BLOCK` lines is folded, if that makes the text shorter.
    """
    lines = text.split("\n")
    if len(set(lines)) == len(lines):
        return text
    folded: list[str] = []
    at = 0
    while at < len(lines):
        for size in range(1, _MAX_BLOCK + 1):
            block = lines[at : at + size]
            end = at + size
            while lines[end : end + size] == block:
                end += size
            repeats = (end - at) // size - 1
            if repeats and sum(map(len, block)) * repeats > _LEAST_FOLDED:
                folded += block
                what = "line" if size == 1 else f"{size} lines"
                folded.append(f"[the same {what} {count(repeats, 'more time')}]")
                at = end
                break
        else:
            folded.append(lines[at])
            at += 1
    return "\n".join(folded)


def _render_displayed(output: Displayed, budget: Budget) -> list[Piece]:
    def render() -> list[Piece]:
        rendered = output.metadata.get(RENDERED)
        if isinstance(rendered, RenderedDisplay):
            return list(rendered.pieces)
        return render_display(output.data, output.metadata, budget)

    return guard(
        render,  # the data may be of any type
        recover=lambda error: [
            Piece(Text(f"[a display that cannot be shown: {describe_error(error)}]"))
        ],
    )
