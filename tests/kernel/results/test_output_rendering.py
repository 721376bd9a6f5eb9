"""What a call printed and displayed, as content: in order, and as it was then."""

import base64

import pytest
from contents import PNG, kinds, only_text, texts

from mcp_notebook.content import Image, ResourceLink, Result, Text
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def converter(formatter):
    """A converter that keeps no originals, so that no links follow what is cut."""
    return Converter(formatter.format, Settings())


def test_prints_and_displays_come_in_order_before_the_value(converter):
    outputs = [
        Printed("first\n"),
        Displayed({"text/plain": "second"}),
        Printed("third\n"),
        Displayed({"image/png": base64.b64encode(PNG).decode(), "text/plain": "<Figure>"}),
    ]
    result = converter.make_result("value", outputs)
    assert kinds(result) == ["Text", "Text", "Text", "Image", "Text"]
    assert texts(result) == ["first", "second", "third", "value"]


def test_a_displayed_table_is_shown_as_a_returned_one(pandas, converter):
    frame = pandas.DataFrame({"a": range(500), "b": 0.5})
    for value in (frame, frame["b"], frame.to_numpy(), frame.index):
        shown = converter.make_result(None, [Displayed(*converter.format_display(value))])
        assert shown == converter.make_result(value, [])


def test_a_displayed_table_is_shown_as_it_was_then(pandas, converter):
    frame = pandas.DataFrame({"a": [1]})
    shown = Displayed(*converter.format_display(frame))
    frame.loc[0, "a"] = 2
    assert "a\n1" in only_text(converter.make_result(None, [shown]))


def test_a_displayed_block_is_what_its_author_made(converter):
    for block in (Text("for you", audience="user"), Image(PNG), ResourceLink("a:b", "c")):
        shown = Displayed(*converter.format_display(block))
        assert converter.make_result(None, [shown]).content == [block]
    shown = Displayed(*converter.format_display(Result([Text("a"), Text("b")])))
    assert texts(converter.make_result(None, [shown])) == ["a", "b"]


def test_a_progress_bar_leaves_its_last_state_only(converter):
    result = converter.make_result(
        None, [Printed("\r 10%"), Printed("\r 50%"), Printed("\r100%\nok\n")]
    )
    assert only_text(result) == "100%\nok"


def test_the_specification_of_an_interactive_plot_does_not_flood(converter):
    spec = {"data": [{"x": n} for n in range(100_000)]}
    bundle = {"application/vnd.vegalite.v5+json": spec, "text/plain": "<VegaLite 5 object>"}
    text = only_text(converter.make_result(None, [Displayed(bundle)]))
    assert "a Vega-Lite chart, not drawn here: it has 1," in text
    assert len(text) < 6_000


def test_a_display_that_nobody_can_read_is_named(converter):
    text = only_text(converter.make_result(None, [Displayed({"application/x-odd": b"\0"})]))
    assert text == "[a display that has no text: application/x-odd]"
