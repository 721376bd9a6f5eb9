"""Objects of any class as content: how they show themselves, or what they say of themselves.

Runs in the user's kernel, on the thread of the call. IPython's formatters are asked, so that an
object looks as in a cell, with whatever the user registered for its type.
"""

from typing import Any

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.self_shown import displays_itself, leave_out_generated_repr
from mcp_notebook.kernel.results.value_renderer import ValueRenderer
from mcp_notebook.kernel.results.value_rules import Position
from mcp_notebook.kernel.safe.deadline import run_bounded
from mcp_notebook.kernel.safe.text import safe_repr, str_says_more


def render_self_shown(
    renderer: ValueRenderer, value: Any, _position: Position
) -> list[Piece] | None:
    """Render what shows itself though it could be read as data; None if it shows nothing."""
    data, _ = run_bounded(renderer.format, value)
    if not data.keys() - {"text/plain"}:
        return [] if not data and displays_itself(value) else None
    return render_mime_bundle(leave_out_generated_repr(value, data), renderer.budget)


def render_object(renderer: ValueRenderer, value: Any, _position: Position) -> list[Piece]:
    """Render any object, as IPython represents it."""
    data, _ = run_bounded(renderer.format, value)
    if data.keys() == {"text/plain"} and str_says_more(value, str(data["text/plain"])):
        return [make_text_piece(run_bounded(str, value))]
    if data:
        return render_mime_bundle(leave_out_generated_repr(value, data), renderer.budget)
    # Nothing: the object displayed itself (which is among the outputs then), or its repr fails.
    return [] if displays_itself(value) else [Piece(Text(safe_repr(value)))]
