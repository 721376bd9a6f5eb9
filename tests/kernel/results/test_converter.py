"""What values, displays and failures become, with IPython's real formatters."""

import base64
import io
import json
from dataclasses import replace

import pytest
from contents import PNG, Broken, NoClass, Point, kinds, only_text, texts
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.results.converter import NOTHING, Converter
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.kernel.schemas.output.output_schema import make_output_schema
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire import content_blocks, frames


@pytest.fixture
def converter(formatter):
    """A converter that keeps no originals, so that no links follow what is cut."""
    return Converter(formatter.format, Settings())


def test_a_tool_that_returns_nothing_says_so(converter):
    assert only_text(converter.make_result(None, ())) == NOTHING


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(["", " \n", "\x1b[31mred\x1b[0m", "a\udfffb", "x" * 6_000, 10**5_000]),
)


@given(PLAIN)
def test_a_plain_value_becomes_what_the_rules_make_of_it(value):
    converter = Converter(DisplayFormatter().format, Settings())
    result = converter.make_result(value, ())
    by_the_rules = converter.make_result(value, (), has_page=True)
    assert repr(result) == repr(replace(by_the_rules, meta=result.meta))


def test_a_table_displayed_in_some_types_only_is_shown_in_these(pandas, converter):
    data, metadata = converter.format_display(pandas.DataFrame({"a": [1]}), ["text/html"])
    assert set(data) == {"text/html"}
    assert not metadata


def test_a_display_made_while_the_value_is_converted_is_part_of_the_result(converter):
    outputs = []

    class ShowsItself:
        def _ipython_display_(self):
            outputs.append(Displayed({"text/markdown": "**me**"}))

    assert only_text(converter.make_result(ShowsItself(), lambda: outputs)) == "**me**"


def test_a_long_text_is_cut_in_the_middle_and_says_so(formatter):
    converter = Converter(formatter.format, Settings(max_result_chars=1_000))
    text = only_text(converter.make_result("a" * 5_000 + "z" * 5_000, ()))
    assert len(text) <= 1_000
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "of 10,000 characters left out" in text


def test_only_the_longest_texts_are_cut_when_together_they_are_too_long(formatter):
    converter = Converter(formatter.format, Settings(max_result_chars=1_000))
    result = converter.make_result("short", [Printed("x" * 5_000)])
    assert texts(result)[1] == "short"
    assert sum(map(len, texts(result))) <= 1_000


def test_of_too_many_pictures_the_first_and_the_last_are_kept(converter):
    pil = pytest.importorskip("PIL.Image")
    result = converter.make_result([pil.new("L", (n + 1, 1)) for n in range(20)], ())
    pictures = [block for block in result.content if isinstance(block, Image)]
    sizes = [pil.open(io.BytesIO(picture.data)).width for picture in pictures]
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 20]
    assert texts(result) == ["[12 of 20 pictures are left out.]"]


def test_a_failure_keeps_what_was_printed_before(converter):
    result = converter.make_failure(ToolError("no such city"), [Printed("looking\n")])
    assert result.is_error
    assert texts(result) == ["looking", "no such city"]


def test_an_interrupt_while_converting_reaches_the_caller(converter):
    class Interrupted:
        def __repr__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        converter.make_result(Interrupted(), ())


WEIRD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.decimals(),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
    st.dates(),
    st.timedeltas(),
    st.uuids(),
    st.builds(Broken),
    st.builds(object),
    st.just(...),
    st.just(Point),
    st.builds(lambda: 10**5000),
    st.builds(Text, st.text(st.characters(exclude_categories=()))),
    st.builds(Image, st.one_of(st.just(PNG), st.binary(), st.text())),
    st.builds(Audio, st.one_of(st.binary(), st.integers())),
)
ODD = st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.lists(st.text()), st.binary())
WEIRD |= st.builds(Text, ODD)
WEIRD |= st.builds(ResourceLink, ODD, ODD, ODD, ODD, ODD, ODD)
WEIRD |= st.builds(Resource, ODD, ODD, ODD)
ANYTHING = st.recursive(
    WEIRD,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(), st.integers(), st.floats(), st.none()), inner),
        st.builds(Result, st.lists(inner), inner),
    ),
    max_leaves=30,
)
PRINTS = st.lists(st.builds(Printed, st.text(st.characters(exclude_categories=()))))
BUNDLES = st.lists(
    st.builds(
        Displayed,
        st.dictionaries(
            st.sampled_from(
                [
                    "text/plain",
                    "text/html",
                    "text/markdown",
                    "image/png",
                    "image/svg+xml",
                    "application/json",
                    "application/vnd.plotly.v1+json",
                ]
            ),
            st.one_of(st.text(), st.binary(), ANYTHING),
        ),
    ),
    max_size=3,
)
FORMATTER = DisplayFormatter()


@given(value=ANYTHING, prints=PRINTS, shown=BUNDLES, limit=st.sampled_from([500, 25_000]))
def test_any_value_gives_a_result_that_can_be_sent(value, prints, shown, limit):
    converter = Converter(FORMATTER.format, Settings(max_result_chars=limit))
    result = converter.make_result(value, [*prints, *shown])
    assert result.content
    assert sum(map(len, texts(result))) <= limit
    for text in texts(result):
        assert text.strip()
        assert "\0" not in text
    message, attachments = content_blocks.pack_result(1, result)
    frames.encode(message, attachments)
    json.dumps(result.structured, allow_nan=False)
    assert list(content_blocks.unpack_result(message, attachments).content) == list(result.content)


def test_a_value_that_does_not_tell_its_class_has_a_sentence(converter):
    text = only_text(converter.make_result(NoClass(), ()))
    assert text == "A value of type NoClass cannot be shown: RuntimeError: no class"


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


def test_a_displayed_table_is_shown_as_it_was_then(pandas, converter):
    frame = pandas.DataFrame({"a": [1]})
    shown = Displayed(*converter.format_display(frame))
    frame.loc[0, "a"] = 2
    assert "a\n1" in only_text(converter.make_result(None, [shown]))


def test_a_display_that_nobody_can_read_is_named(converter):
    text = only_text(converter.make_result(None, [Displayed({"application/x-odd": b"\0"})]))
    assert text == "[a display without text: application/x-odd]"


def convert_as(annotation, value):
    def tool():
        return value

    tool.__annotations__ = {"return": annotation}
    output = make_output_schema(tool, "tool", schema=True)
    return Converter(DisplayFormatter().format, Settings()).make_result(value, (), output)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("annotation", "value", "text", "data"),
    [
        (float, INF, "Infinity", {"result": None}),
        (float, -INF, "-Infinity", {"result": None}),
        (float, NAN, "NaN", {"result": None}),
        (float | None, None, NOTHING, {"result": None}),
        (list[float], [1.0, INF, NAN], '[1.0,"Infinity","NaN"]', {"result": [1.0, None, None]}),
        (dict[str, float], {"a": -INF}, '{"a":"-Infinity"}', {"a": None}),
        (
            dict[str, list[float]],
            {"a": [NAN, 2.0]},
            '{"a":["NaN",2.0]}',
            {"a": [None, 2.0]},
        ),
        (tuple[int, float], (1, INF), '[1,"Infinity"]', {"result": [1, None]}),
    ],
)
def test_infinity_and_nan_are_told_apart_in_the_text_beside_data(annotation, value, text, data):
    result = convert_as(annotation, value)
    assert (only_text(result), result.structured) == (text, data)


def test_so_they_are_of_numpy():
    numpy = pytest.importorskip("numpy")
    assert only_text(convert_as(float, numpy.float64("inf"))) == "Infinity"


WARNED = "/a/b/module.py:12: RuntimeWarning: overflow encountered in exp\n  return numpy.exp(x)\n"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (
            "begin\n" + WARNED * 300 + "end",
            f"begin\n{WARNED}[the same 2 lines 299 more times]\nend",
        ),
        (
            "a line that says the same\n" * 300,
            "a line that says the same\n[the same line 299 more times]",
        ),
        (("x" * 250 + "\n") * 2, "x" * 250 + "\n[the same line 1 more time]"),
        (
            "/tmp/ipykernel_83/378.py:4: UserWarning: few values\n  warn()",
            "Line 4: UserWarning: few values\n  warn()",
        ),
        ("0 0 0\n" * 9, "\n".join(["0 0 0"] * 9)),
        ("a\n\n\n\n\nb", "a\n\n\n\n\nb"),
        ("".join(f"step {n}\n" for n in range(300)), "\n".join(f"step {n}" for n in range(300))),
    ],
)
def test_warnings_name_no_file_of_a_cell_and_equal_lines_are_folded(converter, printed, shown):
    pieces = [Printed(part + "\n") for part in printed.split("\n")]
    value, *rest = reversed(converter.make_result(7, pieces).content)
    assert value.text == "7"
    assert [block.text for block in rest] == [shown]
