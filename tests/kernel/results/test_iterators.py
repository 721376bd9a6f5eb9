"""Items of generators: bounded, and what they raise is the call's failure."""

import asyncio
import csv
import io
import itertools
import json

import pytest
from contents import only_text

from mcp_notebook.kernel.results.iterators import (
    Collected,
    collect_async_items,
    collect_items,
    is_async_generator,
    is_iterator,
)

SAID = (
    "only the first 2 items were taken; the others are lost, since a generator yields each once: "
    "return a list to keep all"
)


def test_an_endless_generator_is_collected_up_to_a_bound(converter):
    def forever():
        while True:
            yield 1

    result = converter.make_result(forever(), ())
    assert "980 of 1,000 items left out; all: always 1" in result.content[0].text
    assert "only the first 1,000 items" in result.content[-1].text


def test_a_generator_that_raises_is_a_failure(converter):
    def fails():
        yield 1
        raise ValueError("midway")

    result = converter.make_result(fails(), ())
    assert result.is_error
    heading, items, error = (block.text for block in result.content)
    assert heading == "[1 item came before the error:]"
    assert items == "[1]"
    assert error.startswith("ValueError: midway")


def test_one_that_raises_at_once_is_only_a_failure(converter):
    result = converter.make_result((1 / 0 for _ in [1]), ())
    assert result.is_error
    assert only_text(result).startswith("ZeroDivisionError: ")


def test_of_more_items_than_are_taken_a_sentence_says_so():
    assert collect_items(iter("ab"), 2) == Collected(["a", "b"])
    assert collect_items(iter("abc"), 2) == Collected(["a", "b"], SAID)


def test_a_file_is_not_an_iterator_whose_items_are_taken():
    assert is_iterator(map(str, [1]))
    assert is_iterator(number for number in [1])
    assert not is_iterator(io.StringIO("text"))
    assert not is_iterator([1])


class Countdown:
    def __init__(self):
        self.left = 3

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: iter([1, 2]), "[1,2]"),
        (lambda: itertools.chain([1], [2]), "[1,2]"),
        (lambda: csv.reader(io.StringIO("a,b\n")), '[["a","b"]]'),
        (lambda: iter({"a": 1}.items()), '[["a",1]]'),
        (lambda: itertools.groupby("aab"), '[["a",["a","a"]],["b",["b"]]]'),
        (Countdown, "[2,1,0]"),
        (itertools.count, "count(0)"),
        (lambda: {"m": map(str, [1]), "z": [zip("a", "b", strict=True)]}, '{"m":["1"],"z":'),
        (lambda: (iter([1]), 2), "[[1],2]"),
    ],
)
def test_what_can_be_read_only_once_is_read(make, said, converter):
    assert only_text(converter.make_result(make(), ())).startswith(said)


def test_a_note_on_the_items_left_is_none_of_the_items(converter, store):
    summary, link, note = converter.make_result((n for n in range(3_000)), ()).content
    assert "980 of 1,000 items left out; all: 0 to 999, mean 499.5" in summary.text
    assert json.loads(store.find_format(link.uri).content()) == list(range(1_000))
    assert note.text.startswith("[Of what it yields, only the first 1,000 items were taken")


def test_an_async_generator_is_closed_on_its_loop_once_enough_items_are_taken():
    closed = []

    async def count():
        try:
            for number in range(10):
                yield number
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    assert is_async_generator(count())
    assert asyncio.run(collect_async_items(count(), 2)) == Collected([0, 1], SAID)
    assert closed
