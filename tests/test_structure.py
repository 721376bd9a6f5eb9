"""What keeps the tree readable: rooms that say what they are, and what others may import."""

import ast
import re
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mcp_notebook"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


def _name(path):
    return str(path.relative_to(ROOT))


def _purpose(room):
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))


def test_each_room_says_what_it_is_and_holds_no_code():
    problems = {_name(room): _problem(room) for room in ROOMS}
    assert {room: problem for room, problem in problems.items() if problem} == {}


def _problem(room):
    """Return what is wrong with a room's own file; None if nothing is."""
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    if len(tree.body) != 1:
        return "holds code"
    purpose = ast.get_docstring(tree)
    if not purpose:
        return "says nothing"
    modules = {path.stem for path in room.iterdir() if not path.name.startswith("__")}
    named = set(re.findall(r"`+([\w.]+)`+", purpose))
    missing = {name.split(".")[0] for name in named if name.endswith(".py")} - modules
    return f"names {missing}" if missing else None


def test_other_rooms_import_what_a_room_names_as_its_face():
    graph = grimp.build_graph("mcp_notebook")
    hidden = {_name(room): _imported_from_outside(room, graph) - _face(room) for room in ROOMS}
    assert {room: modules for room, modules in hidden.items() if modules} == {}


def _face(room):
    """Return the modules that others may import, which a paragraph beginning with "Face" names."""
    # One paragraph, or a line and a list.
    face = re.search(r"^Face\b(.*?)(?:(?<!:)\n\n|\Z)", _purpose(room), re.MULTILINE | re.DOTALL)
    assert face, f"{_name(room)} has no paragraph that begins with 'Face'"
    modules = {path.stem for path in room.glob("*.py")}
    return set(re.findall(r"`(\w+)(?:\.\w+)?`", face[1])) & modules


def _imported_from_outside(room, graph):
    package = ".".join(room.relative_to(ROOT).parts)
    return {
        module.removeprefix(f"{package}.")
        for importer in graph.modules
        if not f"{importer}.".startswith(f"{package}.")
        for module in graph.find_modules_directly_imported_by(importer)
        if module.rpartition(".")[0] == package
    }
