"""Says of each goal in a sentence what was measured, and in another what its floor is."""

from comparison.figures import Measured, Run
from comparison.goals import GOALS, THEIRS, Goal
from comparison.requests import ERAS
from comparison.table import number, place_of, times

CALL = "a bridge and a kernel with nothing in them"
WHAT = {
    "start": "a kernel that answers with cells, without anything of ours",
    "memory-bridge": "a bridge with nothing in it",
}
"""What the floor of a row is; of a call, it is `CALL`."""


def sentences(run: Run) -> list[str]:
    """Return a text for each goal that was measured."""
    measured = [(goal, run.rows[goal.row]) for goal in GOALS if goal.row in run.rows]
    return [
        describe(goal, row, holds=holds)
        for goal, row in measured
        if (holds := goal.holds(row)) is not None
    ]


def describe(goal: Goal, row: Measured, *, holds: bool) -> str:
    """Say what was measured, and what its floor is.

    Args:
        goal: The goal.
        row: What was measured.
        holds: Whether that reaches the goal.
    """
    title = row.title if row.title.startswith("`") else row.title[0].upper() + row.title[1:]
    where = place_of(goal.transport)
    if f"{THEIRS} {goal.transport} legacy" in row.rounds:
        where += f" in the protocol of {ERAS[goal.era]}"
    reaches = "reaches" if holds else "misses"
    least = "at least" if row.more_is_better else "at most"
    unit = "x" if goal.against or row.unit == "x" else f" {row.unit}"
    text = (
        f"{title}, {where}: {write(goal, row, goal.way)}, which {reaches} "
        f"the goal of {least} {goal.bound:g}{unit}."
    )
    floor = goal.floor(row)
    if floor is None:
        return text
    above = "; that alone misses the goal" if goal.holds(row, floor) is False else ""
    what = WHAT.get(goal.row, CALL)
    return f"{text} The floor, {what}, is at {write(goal, row, floor)}{above}."


def write(goal: Goal, row: Measured, way: str) -> str:
    """Write a way's value as the goal counts it, and as it was measured."""
    value = number(row.median(way)) + ("x" if row.unit == "x" else f" {row.unit}")
    ratio = goal.value(row, way) if goal.against else None
    quantity = "calls a second" if row.more_is_better else "time"
    return value if ratio is None else f"{times(ratio)} {goal.against}'s {quantity} ({value})"
