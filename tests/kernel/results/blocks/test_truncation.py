"""Texts that do not fit into a result, and the links to the whole of them."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython import display
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import ResourceLink, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.originals import discard_original, estimate_memory
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import (
    MAX_LINKS,
    truncate_texts,
)
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.settings.settings import Settings


def whole(store, result):
    """Return the names and contents of a result's links."""
    links = [block for block in result.content if isinstance(block, ResourceLink)]
    return {link.name: store.find_format(link.uri).content() for link in links}


def test_a_long_text_is_cut_and_followed_by_a_link_to_the_whole(converter, store):
    text = "line\n" * 20_000
    result = converter.make_result(text, ())
    cut, link = result.content
    assert len(cut.text) <= 25_000 - 200
    assert "of 100,000 characters" in cut.text
    assert (link.name, link.mime_type) == ("text.txt", "text/plain")
    assert link.title == "The whole text: 100,000 characters"
    assert whole(store, result) == {"text.txt": text}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (display.Markdown("# a\n" * 10_000), "text.md"),
        (display.Latex("$x$ " * 10_000), "text.tex"),
        (display.HTML("<p>a</p>" * 10_000), "page.html"),
        (["a"] * 100_000, "value.json"),
        ({"a": "b" * 100_000}, "value.json"),
        (display.JSON({"a": "b" * 100_000}), "value.json"),
    ],
)
def test_the_whole_has_the_form_that_it_is_known_by(converter, store, value, name):
    assert list(whole(store, converter.make_result(value, ()))) == [name]


def test_the_whole_of_a_value_is_all_of_its_json(converter, store):
    value = [{"names": [f"n{number}"]} for number in range(20_000)]
    result = converter.make_result(value, ())
    assert json.loads(whole(store, result)["value.json"]) == value


def test_what_was_printed_is_kept_whole_as_a_terminal_shows_it(converter, store):
    outputs = [
        Printed("1%\r2%\n"),
        Printed("".join(f"\x1b[31m{n}\x1b[0m\n" for n in range(10_000))),
    ]
    result = converter.make_result(None, outputs)
    assert whole(store, result) == {"output.txt": "\n".join(["2%", *map(str, range(10_000))])}


def test_html_whose_scripts_are_large_can_be_read_whole(converter, store):
    html = "<script>" + "x();" * 50_000 + "</script><p>a</p>"
    result = converter.make_result(None, [Displayed({"text/html": html})])
    assert result.content[0] == Text("a")
    assert whole(store, result) == {"page.html": html}


@pytest.mark.slow
def test_html_that_was_read_in_part_says_so(converter):
    text = converter.make_result(display.HTML("<p>word</p>" * 200_000), ()).content[0].text
    assert "of 2,200,000 characters of HTML left out" in text


def test_a_text_that_is_too_large_to_be_kept_says_so():
    small = Converter(DisplayFormatter().format, Settings(), keep=ResourceStore("k", 1_000).keep)
    [text] = small.make_result("x" * 50_000, ()).content
    assert "left out, and too large to be kept ...]" in text.text


def test_many_long_texts_have_a_bounded_number_of_links(store):
    blocks = [Text("x" * (1_000 + number)) for number in range(50)]
    made = truncate_texts(list(map(Piece, blocks)), 10_000, store.keep)
    links = [block for block in made if isinstance(block, ResourceLink)]
    assert len(links) == MAX_LINKS
    wholes = [store.find_format(link.uri).content() for link in links]
    assert wholes[:-1] == [block.text for block in blocks[-MAX_LINKS + 1 :]]
    assert wholes[-1] == "\n\n".join(block.text for block in blocks[: -MAX_LINKS + 1])
    assert links[-1].title == "The whole of 41 other shortened texts"


@given(
    st.lists(st.integers(0, 60_000).map(lambda size: Text("x" * size)), max_size=30),
    st.integers(500, 30_000),
    st.booleans(),
)
def test_texts_and_links_keep_to_the_budget_together(blocks, chars, with_links):
    keep = ResourceStore("k", 10**9).keep if with_links else discard_original
    made = truncate_texts(list(map(Piece, blocks)), chars, keep)
    size = sum(
        len(block.text) if isinstance(block, Text) else len(block.uri + block.name + block.title)
        for block in made
    )
    assert size <= chars
    total = sum(len(block.text) for block in blocks)
    assert total > chars - MAX_LINKS * 200 or made == [block for block in blocks if block.text]


@pytest.mark.slow
def test_a_hundred_megabytes_are_neither_copied_nor_searched(converter):
    text = "\x1b[31mred\x1b[0m line\n" * 5_000_000
    tracemalloc.start()
    try:
        for value in (text, [text], Text(text), display.Markdown(text)):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            result = converter.make_result(value, ())
            assert tracemalloc.get_traced_memory()[1] - before < 2**20
            assert "\x1b" not in result.content[0].text
            assert "[31m" not in result.content[0].text
    finally:
        tracemalloc.stop()


def test_memory_is_estimated_by_a_sample():
    assert estimate_memory("x" * 1_000) == pytest.approx(1_000, rel=0.1)
    assert estimate_memory(["x" * 1_000 + str(number) for number in range(5_000)]) > 5_000_000
    loop: list[object] = []
    loop.append(loop)
    assert estimate_memory(loop) < 10_000


def test_json_that_was_written_is_kept_as_it_was_a_larger_value_as_it_is_when_it_is_read(
    converter, store
):
    small, large = list(range(20_000)), list(range(100_000))
    results = [converter.make_result(value, ()) for value in (small, large)]
    titles = [result.content[1].title for result in results]
    small.clear()
    large.clear()
    assert json.loads(whole(store, results[0])["value.json"]) == list(range(20_000))
    assert json.loads(whole(store, results[1])["value.json"]) == []
    said = "The whole value as JSON"
    assert titles == [said, f"{said}, as of when it is read"]


def test_what_is_far_more_as_text_than_in_memory_is_not_written(converter, store):
    value = [["a" * 100_000] * 20] * 20
    (link,) = (
        block
        for block in converter.make_result(value, ()).content
        if isinstance(block, ResourceLink)
    )
    with pytest.raises(ValueError, match="more than 16,777,216 elements and characters"):
        store.find_format(link.uri).content()


class Odd:
    def __init__(self, nbytes):
        self.find = nbytes

    @property
    def nbytes(self):
        return self.find()


def test_what_objects_do_when_they_are_measured_does_no_harm(store):
    woken = []

    def sleep():
        time.sleep(60)
        woken.append("by itself")

    converter = Converter(DisplayFormatter().format, Settings(), keep=store.keep, seconds=0.2)
    for find in (lambda: 1 / 0, sleep):
        text = converter.make_result([Odd(find), *range(30_000)], ()).content[0].text
        assert "Odd object" in text
    assert not woken
