"""The states of a call, drawn from the table in `mcp_notebook.kernel.calls.call`."""

from collections.abc import Collection

from pictures.drawing import arrow, picture, rectangle, text

from mcp_notebook.kernel.calls.call import ENDED, MOVES, CallState

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
STYLE = """
.begun { fill: #bfdbf7 }
.ended { fill: #f6dfbf }
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
    pieces = [rectangle("panel", *left), rectangle("panel", *right)]
    pieces += [arrow((left[0] + left[2], y), (right[0], y))]
    for state in living:
        following = [to for to in MOVES if to in MOVES[state] and to not in from_anywhere]
        pieces += [arrow(*_ends(state, to)) for to in following]
    for state, (x, y) in PLACES.items():
        kind = "ended" if state in ENDED else "begun"
        pieces.append(rectangle(kind, x - BOX[0] / 2, y - BOX[1] / 2, *BOX))
        pieces.append(text(state, x, y + 5))
    return picture("The states of a call", 595, 315, STYLE, pieces)


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
