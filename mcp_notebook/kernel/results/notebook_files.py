"""A notebook's file as content: its cells and what they showed.

Runs in the user's kernel, on the thread of the call. Tolerant: a file that is no notebook is the
reader's to show otherwise. `nbformat` is the bridge's and never loaded here.
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
"""Sources and outputs of a notebook that are shown."""


def render_notebook(source: str, budget: Budget) -> list[Piece] | None:
    """Make blocks of a notebook's file.

    Args:
        source: Its JSON.
        budget: What the result may take.

    Returns:
        Text and pictures in order; None if it is no notebook of the formats 4.x.
    """
    try:
        notebook = json.loads(source)
        cells = notebook["cells"]
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
        parts = (block for cell in cells for block in _cell(cell, str(language), budget))
        made = list(islice(parts, MAX_PARTS + 1))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if len(made) > MAX_PARTS:
        made[-1] = Piece(Text(f"[The rest of the notebook's {len(cells):,} cells is left out.]"))
    return _joined(made) or [Piece(Text("[a notebook without cells]"))]


def _cell(cell: Mapping[str, Any], language: str, budget: Budget) -> Iterator[Piece]:
    source = _lines(cell["source"]).strip()
    if cell["cell_type"] != "code":
        yield Piece(Text(clean_text(source)))
        return
    yield Piece(Text(f"```{language}\n{clean_text(source)}\n```"))
    for output in cell.get("outputs", ()):
        if "data" in output:
            yield from render_mime_bundle(output["data"], budget)
        elif "text" in output:
            yield Piece(Text(clean_printed(_lines(output["text"])).rstrip()))
        elif "ename" in output:
            yield Piece(Text(clean_text(f"{output['ename']}: {output.get('evalue', '')}")))


def _joined(made: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in made:
        block = piece.block
        last = joined[-1].block if joined else None
        if isinstance(block, Text) and not block.text:
            continue
        if isinstance(block, Text) and isinstance(last, Text):
            joined[-1] = Piece(Text(f"{last.text}\n\n{block.text}"))
        else:
            joined.append(piece)
    return joined


def _lines(source: Any) -> str:
    return "".join(source) if isinstance(source, list) else str(source)
