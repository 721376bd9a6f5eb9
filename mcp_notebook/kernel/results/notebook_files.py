"""Renders the file of a notebook: its cells and their outputs.

Runs in the user's kernel, on the thread of the call. `nbformat` is not loaded in the kernel, so
this reads the JSON itself, and tolerates files that are not valid.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.safe.text import clean_printed, clean_text

MAX_PARTS = 500
"""Most sources and outputs of a notebook that are shown."""


def render_notebook(source: str, budget: Budget) -> list[Piece] | None:
    """Render a notebook.

    Args:
        source: The JSON of the file.
        budget: The limits of the result.

    Returns:
        Texts and images in order; None if it is not a notebook of format 4.
    """
    try:
        notebook = json.loads(source)
        cells = notebook["cells"]
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
        parts = (part for cell in cells for part in _render_cell(cell, str(language), budget))
        pieces = list(islice(parts, MAX_PARTS + 1))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if len(pieces) > MAX_PARTS:
        pieces[-1] = Piece(Text(f"[The rest of the notebook's {len(cells):,} cells is left out.]"))
    return _join_texts(pieces) or [Piece(Text("[a notebook without cells]"))]


def _render_cell(cell: Mapping[str, Any], language: str, budget: Budget) -> Iterator[Piece]:
    source = _join_lines(cell["source"]).strip()
    if cell["cell_type"] != "code":
        yield Piece(Text(clean_text(source)))
        return
    yield Piece(Text(f"```{language}\n{clean_text(source)}\n```"))
    for output in cell.get("outputs", ()):
        if "data" in output:
            yield from render_mime_bundle(output["data"], budget)
        elif "text" in output:
            yield Piece(Text(clean_printed(_join_lines(output["text"])).rstrip()))
        elif "ename" in output:
            yield Piece(Text(clean_text(f"{output['ename']}: {output.get('evalue', '')}")))


def _join_texts(pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        block = piece.block
        last = joined[-1].block if joined else None
        if isinstance(block, Text) and not block.text:
            continue
        if isinstance(block, Text) and isinstance(last, Text):
            joined[-1] = Piece(Text(f"{last.text}\n\n{block.text}"))
        else:
            joined.append(piece)
    return joined


def _join_lines(source: Any) -> str:
    return "".join(source) if isinstance(source, list) else str(source)
