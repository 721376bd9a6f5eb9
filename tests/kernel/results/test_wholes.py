"""Whatever a result shows only a part of can be read whole, at any limit and wherever it lies."""

from collections import deque
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from IPython import display
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import ResourceLink, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings.settings import Settings

NUMBER = 48_151_623
"""Among the elements of each value, where no part of a long one shows it."""
WORD = f"word{NUMBER}"


def numbers(size):
    return [*range(size // 2), NUMBER, *range(size // 2)]


def words(size):
    return [f"w{number}" if number != NUMBER else WORD for number in numbers(size)]


def of_numpy(make):
    return lambda size: make(pytest.importorskip("numpy"), size)


def of_pandas(make):
    return lambda size: make(pytest.importorskip("pandas"), size)


def of_polars(make):
    return lambda size: make(pytest.importorskip("polars"), size)


@dataclass
class Held:
    value: Any


class Shown:
    """An object that is nothing but its repr."""

    def __init__(self, size):
        self.text = f"<Shown {words(size)}>"

    def __repr__(self):
        return self.text


def in_three_dimensions(numpy, size):
    numbers_ = numpy.array([*numbers(size), *range(8)])
    return numbers_[: len(numbers_) // 8 * 8].reshape(-1, 4, 2)


LEAVES = {
    "list": numbers,
    "list of texts": words,
    "tuple": lambda size: tuple(numbers(size)),
    "set": lambda size: set(words(size)),
    "deque": lambda size: deque(numbers(size)),
    "dict": lambda size: dict.fromkeys(words(size), 1),
    "list of dicts": lambda size: [{"a": number, "b": "x"} for number in numbers(size)],
    "list of lists": lambda size: [[number] for number in numbers(size)],
    "text": lambda size: " ".join(words(size)),
    "text of one word": lambda size: "".join(words(size)),
    "text as bytes": lambda size: " ".join(words(size)).encode(),
    "object": Shown,
    "1-D array": of_numpy(lambda numpy, size: numpy.array(numbers(size))),
    "3-D array": of_numpy(in_three_dimensions),
    "2-D array": of_numpy(lambda numpy, size: numpy.array([numbers(size)] * 2).T),
    "wide array": of_numpy(lambda numpy, size: numpy.array([numbers(size // 4)] * 2)),
    "string array": of_numpy(lambda numpy, size: numpy.array(words(size))),
    "object array": of_numpy(lambda numpy, size: numpy.array([*words(size), None], object)),
    "array of times": of_numpy(lambda numpy, size: numpy.array(numbers(size), "datetime64[s]")),
    "masked array": of_numpy(lambda numpy, size: numpy.ma.array(numbers(size))),
    "structured array": of_numpy(
        lambda numpy, size: numpy.array([(n, 1.5) for n in numbers(size)], "i8,f8")
    ),
    "frame": of_pandas(lambda pandas, size: pandas.DataFrame({"a": numbers(size)})),
    "wide frame": of_pandas(lambda pandas, size: pandas.DataFrame([words(size // 4)])),
    "frame with long cells": of_pandas(
        lambda pandas, size: pandas.DataFrame({"a": [" ".join(words(size))]})
    ),
    "frame with lists": of_pandas(lambda pandas, size: pandas.DataFrame({"a": [words(size)]})),
    "series": of_pandas(lambda pandas, size: pandas.Series(words(size))),
    "index": of_pandas(lambda pandas, size: pandas.Index(words(size))),
}
OF_POLARS = {
    "polars frame": of_polars(lambda polars, size: polars.DataFrame({"a": numbers(size)})),
    "polars series": of_polars(lambda polars, size: polars.Series("a", words(size))),
}
MADE = LEAVES | (OF_POLARS if find_spec("polars") else {})
PARTS = {
    "alone": lambda value: value,
    "in a dict": lambda value: {"a": 1, "b": value},
    "in a list": lambda value: [value, "more"],
    "in a tuple": lambda value: ("more", value),
    "in a dataclass": Held,
    "two deep": lambda value: {"a": {"b": [value]}},
    "behind many": lambda value: {**dict.fromkeys(map(str, range(300)), "x" * 50), "b": value},
}
TIME = "1971-07-12T07:27:03"  # that many seconds


def read_all(value, chars, outputs=()):
    """Return the texts of a result, and of all that it links to."""
    store = ResourceStore("k", 10**9)
    converter = Converter(
        DisplayFormatter().format, Settings(max_result_chars=chars), keep=store.keep
    )
    result = converter.make_result(value, outputs)
    for block in result.content:
        if isinstance(block, Text):
            yield block.text
        elif isinstance(block, ResourceLink):
            content = store.find_format(block.uri).content()
            yield content if isinstance(content, str) else ""


def shows(texts, word=str(NUMBER)):
    return any(word in text or TIME in text for text in texts)


@pytest.mark.parametrize("part", ["alone", "in a dict", "two deep"])
@pytest.mark.parametrize(
    "leaf",
    [*LEAVES, *(pytest.param(leaf, marks=pytest.mark.needs("polars")) for leaf in OF_POLARS)],
)
@pytest.mark.parametrize("chars", [100, pytest.param(25_000, marks=pytest.mark.slow)])
def test_what_is_not_shown_can_be_read(leaf, part, chars):
    value = PARTS[part]((LEAVES | OF_POLARS)[leaf](6_000))
    texts = list(read_all(value, chars))
    assert shows(texts), texts[0][:500]


@given(
    st.sampled_from(sorted(MADE)),
    st.lists(st.sampled_from(sorted(PARTS)), max_size=3),
    st.integers(0, 5_000),
    st.integers(1, 30_000),
)
@example("frame", ["in a dataclass"], 60, 100)  # pandas writes two dots in a narrow column
def test_at_any_size_limit_and_depth(leaf, parts, size, chars):
    value = MADE[leaf](size)
    for part in parts:
        value = PARTS[part](value)
    texts = list(read_all(value, chars))
    assert shows(texts), texts[0][:500]


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from(sorted(MADE.keys() - {"wide frame"})), min_size=5, max_size=20),
    st.integers(1, 30_000),
)
def test_of_many_values_in_one_result_each_can_be_read(leaves, chars):
    value = [MADE[leaf](1_200) for leaf in leaves]
    value = [display.Markdown("**rich**"), *value]
    texts = "\n".join(read_all(value, chars))
    assert texts.count(str(NUMBER)) + texts.count(TIME) >= len(leaves)


def test_the_items_of_a_generator_that_were_taken_can_be_read_and_the_others_are_said_lost():
    texts = list(read_all((f"item {number} {'x' * 100}" for number in range(3_000)), 1_000))
    assert any("item 499 " in text for text in texts)
    assert any("only the first 1,000 items were taken; the others are lost" in t for t in texts)


def test_what_is_nested_too_deep_to_be_read_is_said_to_be_so():
    value = []
    for _ in range(200):
        value = [value]
    with pytest.raises(ValueError, match="nested too deep"):
        list(read_all(value, 25_000))
