"""Which resources code may have changed."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from mcp_notebook.kernel.notebook.resource_changes import ResourceChanges, list_words


@dataclass(frozen=True)
class Declared:
    """What a change is found of."""

    name: str
    function: Any


CODE = """
import math
rate, orders, other = 1, [1], [2]
def helper(): return orders
def by_rate(): return math.floor(rate)
def by_orders(): return [item for item in helper()]
"""


@pytest.fixture
def namespace():
    names: dict[str, Any] = {}
    exec(CODE, names)
    return names


@pytest.fixture
def change(namespace):
    changes = ResourceChanges(namespace)
    resources = [Declared("rate", namespace["by_rate"]), Declared("orders", namespace["by_orders"])]

    def run(code):
        exec(code, namespace)
        return changes.find_changed(resources, list_words(code))

    run("pass")
    return run


def test_a_value_that_cannot_change_counts_if_it_is_another_one(change):
    assert change("rate = 2") == (["rate"], ["rate"])
    assert change("print(rate)") == ([], [])
    assert change("rate = 2") == ([], [])


def test_no_code_of_a_value_runs(change, namespace):
    asked = []

    class Lazy(str):
        __slots__ = ()
        __class__ = property(asked.append)
        __eq__ = __ne__ = __hash__ = lambda self, *_: asked.append(self)

    namespace["Lazy"] = Lazy
    change("rate, orders = Lazy('a'), Lazy('b')")
    assert change("rate = Lazy('a'); orders")[0] == ["rate"]
    assert asked == []


def test_a_value_that_can_change_counts_when_it_is_named_directly_or_by_a_function(change):
    assert change("orders.append(3)") == (["orders"], ["orders"])
    assert change("helper().append(4)")[0] == ["orders"]
    assert change("other.append(3)") == ([], ["other"])


def test_modules_and_functions_count_if_they_are_other_ones(change):
    assert change("math.floor(1)") == ([], [])
    assert change("def helper(): return [9]")[0] == ["orders"]
    assert math.floor(1) == 1


def test_a_resource_with_another_function_has_changed(namespace):
    changes = ResourceChanges(namespace)
    changes.find_changed([Declared("rate", namespace["by_rate"])], ())
    found, _ = changes.find_changed([Declared("rate", lambda: 1)], ())
    assert found == ["rate"]


def test_watched_variables_count_when_they_come_change_or_go_however_that_is_done(namespace):
    changes = ResourceChanges(namespace)

    def run(code):
        exec(code, namespace)
        watched = [name for name in ("rate", "orders", "new") if name in namespace]
        return changes.find_changed([], (), watched)[1]

    changes.watch(["rate", "orders"])
    assert run("globals()['rate'] = 2") == ["rate"]
    assert run("pass") == []
    assert run("new = 1") == ["new"]
    assert run("del new") == ["new"]
    assert run("orders = list(orders)") == ["orders"]
