"""The output of a call: printed text, displays, and its content blocks.

Runs in the user's kernel, on the thread of the call. `calls.capture` collects the outputs, and
`converter` puts their blocks before those of the returned value.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece, describe_text_original
from mcp_notebook.kernel.results.displays import render_display
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.text import clean_printed, describe_error


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
    text = clean_printed("".join(prints)).rstrip()
    return [Piece(Text(text), describe_text_original(text, what="output"))] if text else []


def _render_displayed(output: Displayed, budget: Budget) -> list[Piece]:
    def render() -> list[Piece]:
        rendered = output.metadata.get(RENDERED)
        if isinstance(rendered, RenderedDisplay):
            return list(rendered.pieces)
        return render_display(output.data, output.metadata, budget)

    return run_guarded(
        render,  # the data may be of any type
        lambda error: [Piece(Text(f"[a display that cannot be shown: {describe_error(error)}]"))],
    )
