"""What keeps the tree readable: rooms that say what they are, and what others may import."""

import ast
import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mcp_notebook"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


def _name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("room", ROOMS, ids=_name)
def test_a_room_says_what_it_is_and_holds_no_code(room):
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    assert len(tree.body) == 1
    purpose = ast.get_docstring(tree)
    assert len(purpose.splitlines()) >= 8
    modules = {path.stem for path in room.iterdir() if not path.name.startswith("__")}
    named = set(re.findall(r"`+([\w.]+)`+", purpose))
    missing = {name.split(".")[0] for name in named if name.endswith(".py")} - modules
    assert not missing


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("mcp_notebook")


@pytest.mark.parametrize("room", ROOMS, ids=_name)
def test_other_rooms_import_what_a_room_names_as_its_face(room, graph):
    purpose = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    # One paragraph, or a line and a list.
    face = re.search(r"^Face\b(.*?)(?:(?<!:)\n\n|\Z)", purpose, re.MULTILINE | re.DOTALL)
    assert face, "a paragraph that begins with 'Face' names the modules that others may import"
    modules = {path.stem for path in room.glob("*.py")}
    named = set(re.findall(r"`(\w+)(?:\.\w+)?`", face[1])) & modules
    assert named >= _imported_from_outside(room, graph)


def _imported_from_outside(room, graph):
    package = ".".join(room.relative_to(ROOT).parts)
    return {
        module.removeprefix(f"{package}.")
        for importer in graph.modules
        if not f"{importer}.".startswith(f"{package}.")
        for module in graph.find_modules_directly_imported_by(importer)
        if module.rpartition(".")[0] == package
    }
