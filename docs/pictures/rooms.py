"""The rooms of the package and who imports whom, drawn from the code.

The rows are the layers of the contracts in ``pyproject.toml``, the words in the boxes the first
sentences of the docstrings, the arrows the imports in the modules. An arrow that others imply is
left out: a room may use what is anywhere below it.
"""

import ast
import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pictures.drawing import arrow, picture, rectangle, text

ROOT = Path(__file__).parents[2]
PACKAGE = "mcp_notebook"
LEFT_OUT = {"__main__", "_version", "asgi"}
"""Modules that are no room: they only lead to the others, or give them names."""
TITLES = {
    "kernel": "kernel/: inside the user's kernel",
    "bridge": "bridge/: the background process",
    "shared": "used by both processes",
}
INSIDE = 420
"""Pixels between the margins of a panel."""
BOX_WIDTH, BOX_HEIGHT, STEP = 190, 76, 106
GAP, MARGIN, TITLE = 14, 20, 34
LETTER = 6.4
"""Pixels of a letter of the small text, about."""
LEAN = 50
"""Pixels that an arrow may begin beside the middle of its box."""
LINE = 14
"""Pixels from one line of small text to the next."""
LINES = 3
"""Of small text in a box."""
STYLE = """
.room { fill: #bfdbf7 }
.file { fill: #f6dfbf }
.name { font-weight: 600 }
.small { font-size: 11.5px }
.title { font-weight: 600; fill: #57606a }
"""


@dataclass(frozen=True)
class Room:
    """A folder, or a file beside the folders."""

    name: str
    """Its dotted name."""
    path: Path
    others: tuple["Room", ...] = ()
    """Other files that share its box: those beside the rooms of one process."""

    @property
    def labels(self) -> list[str]:
        """The names in its box."""
        paths = [room.path for room in self.members]
        return [f"{path.name}/" if path.is_dir() else path.name for path in paths]

    @property
    def members(self) -> list["Room"]:
        """Itself and the files that share its box."""
        return [self, *self.others]

    @property
    def purpose(self) -> str:
        """The first sentence of its docstring."""
        file = self.path / "__init__.py" if self.path.is_dir() else self.path
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        sentence = re.split(r"(?<=[.:;]) |\n\n", docstring, maxsplit=1)[0]
        return re.sub(r"[\s`]+", " ", sentence).strip().rstrip(".:;")


def read_layers(container: str) -> list[list[str]]:
    """Return the dotted names in each layer of a package's contract, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (
        contract["layers"] for contract in contracts if contract.get("containers") == [container]
    )
    rows = [[f"{container}.{name.strip()}" for name in layer.split("|")] for layer in layers]
    rows = [[name for name in row if name.rpartition(".")[2] not in LEFT_OUT] for row in rows]
    return [row for row in rows if row]


def read_imports(rooms: Sequence[Room]) -> dict[str, set[str]]:
    """Return which rooms the modules of each room import."""
    boxes = {member.name: room.name for room in rooms for member in room.members}
    imports: dict[str, set[str]] = defaultdict(set)
    for room in rooms:
        for module in _modules_imported_by(room):
            for name, box in boxes.items():
                if f"{module}.".startswith(f"{name}.") and box != room.name:
                    imports[room.name].add(box)
    return imports


def _modules_imported_by(room: Room) -> set[str]:
    paths = [member.path for member in room.members]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    return {module for file in files for module in _imported_modules(file)}


@cache
def _imported_modules(file: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in _statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in blocks, at any depth; no expression imports anything."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(node, name, ())
        for statement in inner if isinstance(inner, list) else ():
            yield statement
            yield from _statements(statement)


def reduce_edges(imports: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports that no chain of other imports implies."""

    def reachable(name: str) -> set[str]:
        below = imports.get(name, set())
        return below | {far for near in below for far in reachable(near)}

    return [
        (name, other)
        for name, others in imports.items()
        for other in sorted(others)
        if not any(other in reachable(near) for near in others - {other})
    ]


def draw_rooms() -> str:
    """Return the SVG of all rooms."""
    above, beside, below = _read_shared()
    layers = {side: _read_rows(side) for side in ("kernel", "bridge")}
    outer = INSIDE + 2 * MARGIN
    lefts = {"kernel": GAP, "bridge": outer + 3 * GAP}
    total = lefts["bridge"] + outer + GAP
    pieces = [_draw_box(above, lefts["bridge"] + outer / 2, GAP, INSIDE)]
    pieces += _draw_row(beside, lefts["kernel"] + MARGIN, GAP, INSIDE)
    top = GAP + BOX_HEIGHT + STEP - BOX_HEIGHT
    height = TITLE + max(map(len, layers.values())) * STEP - (STEP - BOX_HEIGHT) + MARGIN
    bottom = top + height + STEP - BOX_HEIGHT
    for side, left in lefts.items():
        pieces.append(_draw_panel(side, left, top, outer, height))
        pieces += _draw_layers(layers[side], left + MARGIN, top + TITLE, height - TITLE - MARGIN)
        if read_imports([_find_room(f"{PACKAGE}.{side}"), *below]):
            middle = left + outer / 2
            pieces.append(arrow((middle, top + height), (middle, bottom)))
    middle = lefts["bridge"] + outer / 2
    pieces.append(arrow((middle, GAP + BOX_HEIGHT), (middle, top)))
    inside = total - 2 * GAP - 2 * MARGIN
    height = TITLE + 2 * BOX_HEIGHT + GAP + MARGIN
    pieces.append(_draw_panel("shared", GAP, bottom, total - 2 * GAP, height))
    half = (len(below) + 1) // 2
    pieces += _draw_row(below[:half], GAP + MARGIN, bottom + TITLE, inside)
    pieces += _draw_row(below[half:], GAP + MARGIN, bottom + TITLE + BOX_HEIGHT + GAP, inside)
    end = bottom + height + GAP
    return picture("The rooms and who imports whom", total, end, STYLE, pieces)


def _read_shared() -> tuple[Room, list[Room], list[Room]]:
    """Return what stands above the two processes' folders (the command), beside, and below them."""
    layers = read_layers(PACKAGE)
    (middle,) = (at for at, layer in enumerate(layers) if f"{PACKAGE}.kernel" in layer)
    above, *others = (_find_room(name) for row in layers[:middle] for name in row)
    sides = {f"{PACKAGE}.{side}" for side in TITLES}
    beside = [_find_room(name) for name in layers[middle] if name not in sides]
    below = [[_find_room(name) for name in row] for row in layers[middle + 1 :]]
    return (
        replace(above, others=tuple(others)),
        beside,
        [replace(room, others=tuple(others)) for room, *others in below],
    )


def _read_rows(side: str) -> list[list[Room]]:
    """Return the rooms of a process in their layers, below one box for the files beside them."""
    layers = [[_find_room(name) for name in layer] for layer in read_layers(f"{PACKAGE}.{side}")]
    file, *others = (room for row in layers for room in row if not room.path.is_dir())
    rows = [[room for room in row if room.path.is_dir()] for row in layers]
    return [[replace(file, others=tuple(others))], *(row for row in rows if row)]


def _find_room(name: str) -> Room:
    path = ROOT.joinpath(*name.split("."))
    return Room(name, path if path.is_dir() else path.with_suffix(".py"))


def _draw_panel(side: str, x: float, y: float, width: float, height: float) -> str:
    title = text(TITLES[side], x + width / 2, y + 23, "title")
    return f"{rectangle('panel', x, y, width, height)}\n{title}"


def _draw_layers(
    rows: Sequence[Sequence[Room]], left: float, top: float, height: float
) -> list[str]:
    """Return boxes and arrows of a panel, one row for each layer."""
    step = (height - BOX_HEIGHT) / (len(rows) - 1)
    edges = reduce_edges(read_imports([room for row in rows for room in row]))
    middles: dict[str, float] = {}
    for row in reversed(rows):
        places = _middles(row, left, INSIDE)
        below = {middles[end] for start, end in edges if start == row[0].name}
        if len(row) == len(below) == 1 and not row[0].others:
            # Straight above the only room that it imports.
            places = [*below]
        middles |= {room.name: x for room, x in zip(row, places, strict=True)}
    tops = {room.name: top + at * step for at, row in enumerate(rows) for room in row}
    pieces = []
    for start, end in edges:
        # Leaning towards its end, an arrow is less often behind a box between the two.
        lean = max(-LEAN, min(LEAN, (middles[end] - middles[start]) / 3))
        pieces.append(
            arrow((middles[start] + lean, tops[start] + BOX_HEIGHT), (middles[end], tops[end]))
        )
    for row in rows:
        width = _width(row, INSIDE)
        pieces += [_draw_box(room, middles[room.name], tops[room.name], width) for room in row]
    return pieces


def _width(row: Sequence[Room], inside: float) -> float:
    widest = INSIDE if any(room.others for room in row) else BOX_WIDTH
    return min(widest, (inside - GAP * (len(row) - 1)) / len(row))


def _middles(row: Sequence[Room], left: float, inside: float) -> list[float]:
    """Return where the boxes of a row have their middles, spread over the panel."""
    return [left + inside * (2 * at + 1) / (2 * len(row)) for at in range(len(row))]


def _draw_row(row: Sequence[Room], left: float, y: float, inside: float) -> list[str]:
    middles = _middles(row, left, inside)
    return [
        _draw_box(room, x, y, _width(row, inside)) for room, x in zip(row, middles, strict=True)
    ]


def _draw_box(room: Room, middle: float, y: float, width: float) -> str:
    letters = int(width / LETTER)
    if room.others:
        names = textwrap.wrap(", ".join(room.labels), int(letters / 1.1), break_long_words=False)
        height = max(BOX_HEIGHT, LINE * len(names) + 10)
        top = y + (height - LINE * len(names)) / 2 + 11
        lines = [text(name, middle, top + LINE * at, "name small") for at, name in enumerate(names)]
        return "\n".join([rectangle("file", middle - width / 2, y, width, height), *lines])
    kind = "room" if room.path.is_dir() else "file"
    purpose = textwrap.wrap(
        room.purpose, letters, max_lines=LINES, placeholder=" \N{HORIZONTAL ELLIPSIS}"
    )
    lines = [text(line, middle, y + 37 + LINE * at, "small") for at, line in enumerate(purpose)]
    box = rectangle(kind, middle - width / 2, y, width, BOX_HEIGHT)
    return "\n".join([box, text(room.labels[0], middle, y + 20, "name"), *lines])
