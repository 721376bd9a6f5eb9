"""What keeps the tree readable: sizes, tests beside their modules, rooms that say what they are."""

import ast
import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mcp_notebook"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.startswith("_"))
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
PARTICIPLES = set("asked begun drawn found given gone held kept known made named".split())  # noqa: SIM905
PARTICIPLES |= set("said seen sent shown taken told wanted whole written inner own".split())  # noqa: SIM905
MAX_MODULE, MAX_CLASS, MAX_FUNCTION = 400, 250, 50
"""Lines."""
TESTED_ELSEWHERE = re.compile(r"^Tested in ``(tests/[\w/]+\.py)``\.", re.MULTILINE)


@pytest.fixture(scope="module")
def trees():
    """What is in the modules."""
    return {module: ast.parse(module.read_text(encoding="utf-8")) for module in MODULES}


def _name(path):
    return str(path.relative_to(ROOT))


def test_a_module_keeps_to_one_job(trees):
    sizes = {module: len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {_name(module): size for module, size in sizes.items() if size > MAX_MODULE} == {}
    long = {
        (_name(module), node.name): size
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for size in [node.end_lineno - node.lineno + 1]
        if size > (MAX_CLASS if isinstance(node, ast.ClassDef) else MAX_FUNCTION)
    }
    assert long == {}


def test_a_module_has_its_tests_at_the_same_place(trees):
    without = [_name(module) for module, tree in trees.items() if not _has_tests(module, tree)]
    assert without == []


def _has_tests(module, tree):
    place = module.relative_to(PACKAGE)
    own = ROOT / "tests" / place.parent / f"test_{place.name}"
    elsewhere = TESTED_ELSEWHERE.search(ast.get_docstring(tree))
    return own.exists() or (elsewhere and (ROOT / elsewhere[1]).exists())


def test_a_test_has_its_module_at_the_same_place():
    rooms = [ROOT / "tests" / room.relative_to(PACKAGE) for room in ROOMS]
    tests = [path for room in rooms for path in room.glob("test_*.py")]
    assert len(tests) > len(ROOMS)
    for test in tests:
        place = test.relative_to(ROOT / "tests").parent
        modules = [module.stem for module in (PACKAGE / place).glob("*.py")]
        # A module's tests may be several files: test_invoker.py, test_invoker_threads.py.
        assert any(test.stem.startswith(f"test_{module}") for module in modules), _name(test)


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


def test_names_are_verbs_predicates_and_nouns(trees):
    """A bare participle (`made`, `shown`) says neither what a function does nor what a value is."""
    found = {
        (_name(module), name)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        for name in _names_that_are_bound(node)
        if name.strip("_").lower() in PARTICIPLES
    }
    assert found == set()


def _names_that_are_bound(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    return []
