"""Items of generators: bounded, and what they raise is the call's failure."""

import asyncio
import io

from contents import NoClass, only_text

from mcp_notebook.kernel.results.iterators import (
    collect_async_items,
    collect_items,
    is_async_generator,
    is_awaitable,
    is_iterator,
)

SAID = (
    "... only the first 2 items were taken; the others are lost, since a generator yields each "
    "once: return a list to keep all ..."
)


def test_an_endless_generator_is_collected_up_to_a_bound(converter):
    def forever():
        while True:
            yield 1

    text = converter.make_result(forever(), ()).content[0].text
    assert "only the first 1,000 items" in text


def test_a_generator_that_raises_is_a_failure(converter):
    def fails():
        yield 1
        raise ValueError("midway")

    result = converter.make_result(fails(), ())
    assert result.is_error
    assert only_text(result).startswith("ValueError: midway")


def test_of_more_items_than_are_taken_a_sentence_says_so():
    assert collect_items(iter("ab"), 2) == ["a", "b"]
    assert collect_items(iter("abc"), 2) == ["a", "b", SAID]


def test_a_file_is_not_an_iterator_whose_items_are_taken():
    assert is_iterator(map(str, [1]))
    assert is_iterator(number for number in [1])
    assert not is_iterator(io.StringIO("text"))
    assert not is_iterator([1])


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
    items = asyncio.run(collect_async_items(count(), 2))
    assert items == [0, 1, SAID]
    assert closed


def test_a_value_that_fails_to_say_what_it_is_is_not_awaitable():
    assert not is_awaitable(NoClass())
