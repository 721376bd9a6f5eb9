# ruff: noqa: INP001 - a script, no package
"""Makes the pictures of the README and of CONTRIBUTING.md.

``plot_rain.png`` by really running the README's first three cells and calling the tool;
``call_states.svg`` from the table in `kernel.calls.call`. Run by hand, in an environment with the
extras ``demo``, whenever those cells or that table change: ``python docs/make_pictures.py``. The
tests check that it still works, and that the picture shows the table.
"""

import os
import re
import sys
import tempfile
from base64 import b64decode
from collections.abc import Collection
from pathlib import Path

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from mcp_notebook.kernel.calls.call import ENDED, MOVES, CallState

ROOT = Path(__file__).parent.parent
CALL = "%mcp call plot_rain year=2015"


def plot_rain() -> bytes:
    """Return the PNG that a client gets for the README's example."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[:3]
    notebook = new_notebook(cells=[new_code_cell(source) for source in [*cells, CALL]])
    with tempfile.TemporaryDirectory() as home:  # no client of the user's shall see this kernel
        client = NotebookClient(notebook, kernel_name="python3", timeout=120)
        client.execute(env=os.environ | {"MCP_NOTEBOOK_HOME": home})
    (output,) = notebook.cells[-1].outputs
    return b64decode(output.data["image/png"])


# -- the states of a call --------------------------------------------------------------------------

PLACES = {
    CallState.QUEUED: (95, 60),
    CallState.RUNNING: (95, 135),
    CallState.WAITING: (95, 215),
    CallState.DONE: (360, 135),
    CallState.FAILED: (360, 222),
    CallState.CANCELLED: (500, 222),
    CallState.TIMED_OUT: (360, 264),
    CallState.LOST: (500, 264),
}
"""The middle of each state's box."""
BOX = (124, 34)
MARGIN = 22
"""From the boxes of a panel to its edge."""
LINE = "#7d8590"
"""A grey that can be seen on white and on black; text is only on panels and boxes."""
SVG = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 595 315" width="595" height="315">
<title>The states of a call</title>
<style>
text {{{{ font: 15px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }}}}
path {{{{ stroke: {LINE}; stroke-width: 2; marker-end: url(#head) }}}}
.panel {{{{ fill: #eef1f4; stroke: {LINE} }}}}
.begun {{{{ fill: #bfdbf7 }}}}
.ended {{{{ fill: #f6dfbf }}}}
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="12" markerHeight="12" \
markerUnits="userSpaceOnUse" orient="auto">\
<polygon points="0 0 10 5 0 10" fill="{LINE}"/></marker></defs>
{{}}
</svg>
"""


def call_states() -> str:
    """Return the SVG of `MOVES`.

    States that a call can come to from every state that is no end have a panel instead of arrows
    of their own: one arrow leads there from the panel of all states that are no end.

    Raises:
        KeyError: A state has no place in `PLACES`.
    """
    living = [state for state in MOVES if state not in ENDED]
    from_anywhere = [state for state in MOVES if all(state in MOVES[before] for before in living)]
    left, right = _panel(living), _panel(from_anywhere)
    y = right[1] + right[3] / 2
    pieces = [_rectangle("panel", *left), _rectangle("panel", *right)]
    pieces += [_arrow((left[0] + left[2], y), (right[0], y))]
    for state in living:
        following = [to for to in MOVES if to in MOVES[state] and to not in from_anywhere]
        pieces += [_arrow(*_ends(state, to)) for to in following]
    for state, (x, y) in PLACES.items():
        kind = "ended" if state in ENDED else "begun"
        pieces.append(_rectangle(kind, x - BOX[0] / 2, y - BOX[1] / 2, *BOX))
        pieces.append(f'<text x="{x}" y="{y + 5}">{state}</text>')
    return SVG.format("\n".join(pieces))


def _panel(states: Collection[CallState]) -> tuple[float, float, float, float]:
    """Return left, top, width and height of the panel around the boxes of states."""
    xs, ys = zip(*(PLACES[state] for state in states), strict=True)
    width = max(xs) - min(xs) + BOX[0] + 2 * MARGIN
    height = max(ys) - min(ys) + BOX[1] + 2 * MARGIN
    return min(xs) - BOX[0] / 2 - MARGIN, min(ys) - BOX[1] / 2 - MARGIN, width, height


def _ends(start: CallState, end: CallState) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where the arrow between two boxes begins and ends: side by side, or one below."""
    (x, y), (to_x, to_y) = PLACES[start], PLACES[end]
    if x == to_x:
        down = 1 if to_y > y else -1
        x -= 14 * down if start in MOVES[end] else 0  # there and back: side by side
        return (x, y + down * BOX[1] / 2), (x, to_y - down * BOX[1] / 2)
    right = 1 if to_x > x else -1
    return (x + right * BOX[0] / 2, y), (to_x - right * BOX[0] / 2, to_y)


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" {place} rx="7"/>'


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<path d="M{start[0]:g} {start[1]:g} {end[0]:g} {end[1]:g}"/>'


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    (folder / "call_states.svg").write_text(call_states(), encoding="utf-8", newline="\n")
    (folder / "plot_rain.png").write_bytes(plot_rain())
