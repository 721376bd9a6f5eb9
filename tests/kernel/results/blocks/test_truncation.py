"""Texts that do not fit into a result, and the links to the whole of them."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython import display
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import ResourceLink, Result, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks import author_blocks as blocks
from mcp_notebook.kernel.results.blocks.originals import discard_original, estimate_memory
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import (
    MAX_LINKS,
    MAX_REPEATED,
    truncate_texts,
)
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.kernel.schemas.output.output_schema import make_output_schema
from mcp_notebook.settings.settings import Settings


def whole(store, result):
    """Return the names and contents of a result's links."""
    links = [block for block in result.content if isinstance(block, ResourceLink)]
    return {link.name: store.find_format(link.uri).content() for link in links}


def of_schema(function):
    return make_output_schema(function, "tool", schema=True)[0]


def test_a_long_text_is_cut_and_followed_by_a_link_to_the_whole(converter, store):
    text = "line\n" * 20_000
    result = converter.make_result(text, ())
    cut, link = result.content
    assert len(cut.text) <= 25_000 - 200
    assert "of 100,000 characters" in cut.text
    assert (link.name, link.mime_type) == ("text.txt", "text/plain")
    assert link.title == "The whole text: 100,000 characters"
    assert whole(store, result) == {"text.txt": text}


def test_a_text_that_fits_has_no_link(converter):
    assert converter.make_result("x" * 25_000, ()).content == [Text("x" * 25_000)]


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
    outputs = [Printed("1%\r2%\n"), Printed("\x1b[31mline\x1b[0m\n" * 10_000)]
    result = converter.make_result(None, outputs)
    assert whole(store, result) == {"output.txt": "2%\n" + "line\n" * 9_999 + "line"}


def test_html_whose_scripts_are_large_can_be_read_whole(converter, store):
    html = "<script>" + "x();" * 50_000 + "</script><p>a</p>"
    result = converter.make_result(None, [Displayed({"text/html": html})])
    assert result.content[0] == Text("a")
    assert whole(store, result) == {"page.html": html}


@pytest.mark.slow
def test_html_that_was_read_in_part_says_so(converter):
    text = converter.make_result(display.HTML("<p>word</p>" * 200_000), ()).content[0].text
    assert "of 2,200,000 characters of HTML left out" in text


def test_html_whose_beginning_has_no_text_says_so_and_can_be_read(converter, store):
    html = "<div>" * 50_000 + "deep"
    result = converter.make_result(display.HTML(html), ())
    assert result.content[0].text.startswith("[... 1")
    assert whole(store, result) == {"page.html": html}


def test_a_text_that_is_cut_for_the_link_of_another_has_its_link_too(store):
    pieces = [Piece(Text("a" * 8_000)), Piece(Text("b" * 4_950))]
    blocks = truncate_texts(pieces, 10_000, store.keep)
    assert [type(block) for block in blocks] == [Text, ResourceLink] * 2
    assert [len(store.find_format(link.uri).content()) for link in blocks[1::2]] == [8_000, 4_950]


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


def test_a_whole_text_is_clean_when_it_is_read(converter, store):
    result = converter.make_result("\x1b[31mred\x1b[0m\x00\n" * 200_000, ())
    assert whole(store, result) == {"text.txt": "red\ufffd\n" * 200_000}


def test_a_tool_may_have_a_budget_of_its_own(converter):
    [text] = converter.make_result("x" * 40_000, (), max_chars=40_000).content
    assert len(text.text) == 40_000
    small = converter.make_result("x" * 40_000, (), max_chars=1_000)
    assert len(small.content[0].text) <= 1_000


# -- the same as structured content ----------------------------------------------------------------


def test_a_long_list_of_what_is_structured_content_is_whole_there_only():
    def numbers() -> list[int]:
        """Numbers."""

    converter = Converter(DisplayFormatter().format, Settings())
    value = list(range(4_000))
    result = converter.make_result(value, (), of_schema(numbers))
    [text] = result.content
    assert result.structured == value
    assert "3,980 of 4,000 items left out; all: 0 to 3999, mean 1999.5" in text.text
    assert text.brief is None


def test_a_large_text_in_what_is_structured_content_is_cut_in_the_brief_one(converter):
    def texts() -> list[str]:
        """Texts."""

    value = ["word " * 200] * 10
    result = converter.make_result(value, (), of_schema(texts))
    [text] = result.content
    assert json.loads(text.text) == value == result.structured
    assert len(text.brief) <= MAX_REPEATED
    assert "left out: the structured content has all of it ...]" in text.brief


def test_a_small_one_is_whole_in_both(converter):
    def numbers() -> list[int]:
        """Numbers."""

    result = converter.make_result([1, 2], (), of_schema(numbers))
    assert result.content == [Text("[1,2]")]
    assert result.structured == [1, 2]


def test_the_text_of_a_table_that_is_structured_content_has_a_brief_one(converter):
    pandas = pytest.importorskip("pandas")

    def table() -> pandas.DataFrame:
        """Rows."""

    frame = pandas.DataFrame({f"column {n}": ["word " * 30] * 40 for n in range(2)})
    result = converter.make_result(frame, (), of_schema(table))
    assert len(result.structured) == 40
    assert len(result.content[0].text) > MAX_REPEATED >= len(result.content[0].brief)


def test_a_result_by_hand_that_has_only_data_says_it_as_text_and_in_brief(converter):
    result = converter.make_result(Result(structured=list(range(5_000))), ())
    assert result.content[0].brief is not None
    assert converter.make_result(Result("own text", structured={"a": 1}), ()).content == [
        Text("own text")
    ]


def test_other_texts_have_no_brief_one(converter):
    assert converter.make_result("x" * 20_000, ()).content[0].brief is None


def test_memory_is_estimated_by_a_sample():
    assert estimate_memory("x" * 1_000) == pytest.approx(1_000, rel=0.1)
    assert estimate_memory(["x" * 1_000 + str(number) for number in range(5_000)]) > 5_000_000
    loop: list[object] = []
    loop.append(loop)
    assert estimate_memory(loop) < 10_000


def test_a_text_that_is_not_cut_leaves_the_conversion_as_it_is():
    text = Text("a", audience=("user",))
    (block,) = truncate_texts([Piece(text, is_partial=True)], 100, discard_original)
    assert block is text


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


def test_what_is_far_more_as_text_than_in_memory_is_not_written(converter, store, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_JSON", 30_000)
    value = ["a"] * 10
    for _ in range(9):
        value = [value] * 10
    (link,) = (
        block
        for block in converter.make_result(value, ()).content
        if isinstance(block, ResourceLink)
    )
    with pytest.raises(ValueError, match="more than 30,000 elements and characters"):
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


def test_measuring_takes_bounded_time():
    began = time.process_time()
    assert estimate_memory([[[[1] * 20] * 20] * 1_000] * 1_000) > 1_000_000_000
    assert time.process_time() - began < 5  # all of it takes minutes
    assert estimate_memory([1] * 5_000 + ["x" * 1_000_000] * 5_000) > 4_000_000_000
