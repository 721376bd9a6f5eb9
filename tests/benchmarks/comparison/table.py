"""Shows a run as tables: in a terminal, and for the documentation in Markdown."""

from collections.abc import Collection
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from comparison.figures import Measured, Run
from comparison.goals import GOALS, OURS, THEIRS

COLUMNS = {OURS: OURS, THEIRS: THEIRS, "SDK": "SDK, low-level", "gradio": "gradio"}
"""Servers that have a column, and its heading."""
TRANSPORTS = {"http": "Over HTTP", "stdio": "Over stdio"}
ERAS = ("modern", "legacy")
MARKS = {True: "✓", False: "✗"}


@dataclass
class Shown:
    """A table as texts."""

    title: str
    head: list[str]
    rows: list[list[str]]


def tables(run: Run) -> list[Shown]:
    """Return a table for each transport, and one of all else."""
    parts = []
    for transport, title in TRANSPORTS.items():
        compared = {key: row for key, row in run.rows.items() if any_of(row, THEIRS, transport)}
        servers = [
            server
            for server in COLUMNS
            if server != OURS and any(any_of(r, server, transport) for r in compared.values())
        ]
        rows = [
            [
                f"{row.title}, {row.unit}",
                cell(row, OURS, transport),
                goals_of(key, row, transport),
                *(cell(row, server, transport) for server in servers),
            ]
            for key, row in compared.items()
        ]
        head = ["", OURS, "goal", *(COLUMNS[server] for server in servers)]
        parts.append(Shown(title, head, rows))
    parts.append(Shown("Beside them", ["", "", "value"], others(run)))
    return [table for table in parts if table.rows]


def others(run: Run) -> list[list[str]]:
    """Return the rows of what is measured of one server alone."""
    return [
        [f"{row.title}, {row.unit}", place(way), number(row.median(way))]
        for row in run.rows.values()
        for way in row.rounds
        if row.rounds[way] and not is_compared(row, way)
    ]


def place(way: str) -> str:
    """Say where a value that stands alone was measured."""
    server, transport, _ = way.rsplit(" ", 2)
    over = place_of(transport) if server in COLUMNS and transport in TRANSPORTS else ""
    return f"{server} {over}".strip()


def place_of(transport: str) -> str:
    """Write a transport as in the middle of a sentence."""
    return f"o{TRANSPORTS[transport][1:]}"


def is_compared(row: Measured, way: str) -> bool:
    """Tell whether a value stands in one of the tables of the transports."""
    server, transport, _ = way.rsplit(" ", 2)
    return server in COLUMNS and bool(any_of(row, THEIRS, transport))


def any_of(row: Measured, server: str, transport: str) -> list[str]:
    """Return the eras in which a server was measured."""
    return [era for era in ERAS if row.rounds.get(f"{server} {transport} {era}")]


def number(value: float) -> str:
    """Write a value with three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.01 else f"{value:.2g}"


def times(ratio: float) -> str:
    """Write a ratio."""
    return f"{ratio:.2f}x" if ratio >= 0.01 else "<0.01x"


def cell(row: Measured, server: str, transport: str) -> str:
    """Write a server's values in both eras, and how many times FastMCP's each is."""
    eras = any_of(row, server, transport)
    cells = []
    for era in ERAS if row.rounds.keys() & {f"{THEIRS} {transport} legacy"} else eras:
        way = f"{server} {transport} {era}"
        if era not in eras:
            cells.append("-")
            continue
        alone = server == THEIRS or row.unit == "x"
        ratio = None if alone else row.ratio(way, f"{THEIRS} {transport} {era}")
        ratio_text = f" ({times(ratio)})" if ratio is not None else ""
        cells.append(number(row.median(way)) + ratio_text)
    return " / ".join(cells) if eras else ""


def goals_of(key: str, row: Measured, transport: str) -> str:
    """Say the goals of a row, and whether they hold."""
    texts = [
        f"{goal.describe_bound(row)} {MARKS[holds]}"
        for goal in GOALS
        if (goal.row, goal.transport) == (key, transport) and (holds := goal.holds(row)) is not None
    ]
    return " / ".join(texts)


def markdown(run: Run, keys: Collection[str]) -> str:
    """Write these rows in a table for each transport, in Markdown, the two eras in two lines."""
    run = Run(run.about, {key: row for key, row in run.rows.items() if key in keys})
    return "\n\n".join(
        f"**{table.title}**\n\n"
        + "\n".join(
            f"| {' | '.join([row[0], *map(in_lines, row[1:])])} |".replace("|  |", "| |")
            for row in [table.head, ["---"] * len(table.head), *table.rows]
        )
        for table in tables(run)
        if table.title in TRANSPORTS.values()
    )


def in_lines(text: str) -> str:
    """Write a cell so that it breaks between its eras, and nowhere else."""
    return text.replace(" / ", "<br>").replace(" (", "&nbsp;(").replace("≤ ", "≤&nbsp;")


def show(run: Run) -> None:
    """Print the tables."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    for content in tables(run):
        table = Table(*content.head, title=content.title, title_justify="left")
        for row in content.rows:
            table.add_row(*row)
        console.print(table)
    eras = "modern (2026-07-28) / legacy (2025-11-25)"
    console.print(f"Values: {eras}; in parentheses, times {THEIRS}'s of the same round.")
