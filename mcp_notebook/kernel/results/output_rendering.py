"""What a call printed and displayed, as content.

Runs in the user's kernel, on the thread of the call.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece, describe_text_original
from mcp_notebook.kernel.results.displays import render_display
from mcp_notebook.kernel.results.outputs import Displayed, Output, Printed
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.text import clean_printed, describe_error

RENDERED = "mcp_notebook.rendered"
"""Key of a display's metadata: a `RenderedDisplay`."""


@dataclass(frozen=True)
class RenderedDisplay:
    """A value that was rendered when it was displayed: it may change until the call ends."""

    pieces: Sequence[Piece]


def render_outputs(outputs: Iterable[Output], budget: Budget) -> list[Piece]:
    """Render the outputs of a call in their order, neighbouring prints as one text.

    Args:
        outputs: What the call printed and displayed.
        budget: What the result may take.
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
