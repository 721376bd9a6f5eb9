"""What a cell is importing just now is not there yet: calls beside it do without."""

import sys
import threading
from decimal import Decimal
from fractions import Fraction

import pytest
from live import Link, live_kernel, record_of, text_of

from mcp_notebook.kernel.safe.libraries import (
    claims_class,
    find_imported,
    find_libraries,
    is_instance,
)

MODULE = """
import pathlib, time
print("began", flush=True)
while not pathlib.Path("release").exists():
    time.sleep(0.01)
"""
TOOLS = '''
from mcp_notebook import mcp_tool

@mcp_tool(run="thread")
def add_in_thread(a: int, b: float | None = None) -> int:
    """Add."""
    print("adds")
    return a + 1

@mcp_tool(run="fork", read_only=True)
def add_in_copy(a: int, b: float | None = None) -> int:
    """Add."""
    print("adds")
    return a + 1

@mcp_tool(run="thread")
def guess_in_thread(a, b=1.5):
    """Return numbers.

    Args:
        a (DataFrame): A table.
        b (array_like): Numbers.
    """
    return [{"a": 1.5, "b": 0.25}]
'''
LIBRARIES = (
    "numpy",
    "pandas",
    "PIL.Image",
    "matplotlib._pylab_helpers",
    "tqdm.std",
)


def write_module(folder, name):
    """Write a module whose import takes until the test releases it."""
    *packages, module = name.split(".")
    for package in packages:
        folder /= package
        folder.mkdir()
        (folder / "__init__.py").touch()
    (folder / f"{module}.py").write_text(MODULE)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "pandas" else pytest.mark.slow) for name in LIBRARIES],
)
def test_calls_run_while_a_cell_imports_a_library(home, name):
    write_module(home, name)
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok("import sys; sys.path.insert(0, '')")
        kernel.ok(TOOLS)
        kernel.ok(TOOLS)  # the schemas of the second time are those that were stored
        request = kernel.start(f"import {name}")
        while "began" not in kernel.wait_for("stream")["text"]:
            pass
        with Link(record_of(kernel)) as link:
            results = [
                link.call("add_in_thread", a=1),
                link.call("add_in_copy", a=1),
                link.call("guess_in_thread", a=1),
            ]
        (home / "release").touch()
        assert kernel.finish(request).error is None
    assert [result.is_error for result in results] == [False] * 3, list(map(text_of, results))


def test_a_module_is_found_once_it_is_imported_completely(tmp_path, monkeypatch):
    may_end, began = threading.Event(), threading.Event()
    sys.modules["moments"] = type(sys)("moments")
    sys.modules["moments"].began, sys.modules["moments"].may_end = began, may_end
    (tmp_path / "slowly_imported.py").write_text(
        "import moments\nmoments.began.set()\nmoments.may_end.wait(30)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert find_imported("slowly_imported") is None
    thread = threading.Thread(target=__import__, args=("slowly_imported",))
    thread.start()
    try:
        assert began.wait(30)
        assert "slowly_imported" in sys.modules
        assert find_imported("slowly_imported") is None
        may_end.set()
        thread.join()
        assert find_imported("slowly_imported") is sys.modules["slowly_imported"]
        assert find_imported("moments") is sys.modules["moments"]  # it has no specification
    finally:
        may_end.set()
        del sys.modules["moments"]
        sys.modules.pop("slowly_imported", None)


HERE = __name__.partition(".")[0]


class OfTwo(Fraction):
    pass


class Proxy:
    """Claims to be of another class, as proxies do."""

    def __init__(self, claimed):
        self.claimed = claimed

    @property
    def __class__(self):
        return self.claimed


class Mute(type):
    """Classes that do not tell their modules."""

    def __getattribute__(cls, name):
        raise RuntimeError(name)


@pytest.mark.parametrize(
    ("value", "libraries"),
    [
        (object(), set()),
        (1, {"builtins"}),
        (OfTwo(1), {HERE, "fractions", "numbers"}),
        (Proxy(dict), {HERE, "builtins"}),
        (Proxy("no class"), {HERE}),
    ],
)
def test_libraries_are_the_modules_of_all_classes_of_a_value(value, libraries):
    assert find_libraries(value) == libraries


def test_a_subclass_in_a_module_of_the_users_is_of_the_library_too():
    pandas = pytest.importorskip("pandas")

    class Mine(pandas.DataFrame):
        pass

    assert {"pandas", HERE} <= find_libraries(Mine())


def test_a_class_that_does_not_tell_its_module_is_known_all_the_same():
    class Silent(metaclass=Mute):
        pass

    assert find_libraries(object.__new__(Silent)) == {HERE}


def test_a_class_of_a_library_is_known_without_importing_it():
    assert is_instance(Decimal(1), "decimal.Decimal")
    assert not is_instance(1, "decimal.Decimal")
    assert not is_instance(1, "not_installed.Thing")


class Watches:
    def __getattribute__(self, name):
        raise AssertionError(name)


@pytest.mark.parametrize(
    ("kind", "claims"),
    [(Proxy, True), (Watches, True), (OfTwo, False), (int, False), (type(sys), False)],
)
def test_objects_that_say_their_class_themselves_are_known_without_asking(kind, claims):
    assert claims_class(kind) is claims
