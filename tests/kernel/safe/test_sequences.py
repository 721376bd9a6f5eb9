"""Sequences and mappings of any class: what they are, and in which order they are read."""

import array
import collections
import math

from mcp_notebook.kernel.safe.sequences import is_sequence, list_keys, order_items


def test_a_set_has_one_order_whatever_is_in_it():
    assert list(order_items({"pear", "fig", "apple"})) == ["apple", "fig", "pear"]
    assert list(order_items({(2, "a"), (10, "b"), (1, "c")})) == [(1, "c"), (2, "a"), (10, "b")]
    mixed = list(order_items({"b", 2, None, 1}))
    assert [type(item).__name__ for item in mixed] == ["NoneType", "int", "int", "str"]
    assert list(map(sorted, order_items({frozenset("b"), frozenset("a")}))) == [["a"], ["b"]]
    assert list(order_items({3.0, math.inf, 1.0})) == [1.0, 3.0, math.inf]


def test_a_subclass_with_a_repr_and_attributes_is_more_than_its_items():
    class Tree(list):
        def __init__(self, label, items):
            super().__init__(items)
            self.label = label

        def __repr__(self):
            return f"Tree({self.label!r}, {list(self)!r})"

    class Rows(list):
        pass

    assert not is_sequence(Tree("S", ["a"]))
    assert is_sequence(Rows(["a"]))
    assert is_sequence(array.array("d"))
    assert not is_sequence("text")
    assert not is_sequence({"a": 1})


def test_the_most_common_keys_of_a_counter_come_first():
    counter = collections.Counter("abbccc")
    assert list(list_keys(counter, 2)) == ["c", "b"]
    assert list(list_keys({"a": 1}, 2)) == ["a"]
