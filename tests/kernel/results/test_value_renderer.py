"""What values become, with IPython's real formatters."""

import base64
import json
import uuid
from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from contents import PNG, Broken, Colour, NoClass, Point, Segment, kinds, only_text, texts
from IPython import display

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def converter(formatter):
    """A converter that keeps no originals, so that no links follow what is cut.

    It has a minute: a busy machine may need more than the usual 5 s for 1,000 frames.
    """
    return Converter(formatter.format, Settings(), seconds=60)


def test_a_result_within_a_value_gives_its_content(converter):
    own = Result([Text("a", audience="user"), [1, 2]])
    expected = [Text("a", audience="user"), Text("[1,2]")]
    assert converter.make_result([own], []).content == expected
    assert converter.make_result(Result([own, Text("b")]), []).content == [*expected, Text("b")]
    assert texts(converter.make_result({"x": own}, []))[1:] == ["a", "[1,2]"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text", "a text"),
        (True, "true"),
        (3, "3"),
        (0.1, "0.1"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ({"a": 1, "b": [1, None]}, '{"a":1,"b":[1,null]}'),
        ((1, "x"), '[1,"x"]'),
        ({7}, "[7]"),
        (Colour.RED, "red"),
        (date(2024, 2, 29), "2024-02-29"),
        (timedelta(days=1, hours=2), "P1DT2H"),
        (Decimal("1.50"), "1.50"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (PurePosixPath("/tmp/x"), "/tmp/x"),
        (b"bytes", "bytes"),
        (b"\xff\xfe", "<2 bytes: ff fe>"),
        (Point(x=1), '{"x":1,"label":null}'),
        (Segment(Point(x=1), 2.5), '{"start":{"x":1,"label":null},"length":2.5}'),
        ({date(2024, 1, 1): 1, (1, "a"): 2, None: 3}, '{"2024-01-01":1,"1, a":2,"null":3}'),
        ((n * n for n in range(4)), "[0,1,4,9]"),
        (range(3), "[0,1,2]"),
        pytest.param(10**5000, "<an int of 16,610 bits, too long to print>", id="huge int"),
    ],
)
def test_plain_values_become_readable_text(converter, value, text):
    assert only_text(converter.make_result(value, ())) == text


def test_a_text_that_a_model_could_not_take_is_replaced(converter):
    assert only_text(converter.make_result("\x1b[31mred\x1b[0m \ud800\0", ())) == "red \ufffd\ufffd"
    assert only_text(converter.make_result(" \n", ())) == "Done: the tool returned an empty text."


def test_json_is_on_one_line_which_costs_the_fewest_tokens(converter):
    text = only_text(converter.make_result([{"name": "x" * 30, "n": [n]} for n in range(3)], ()))
    assert len(text.splitlines()) == 1
    assert json.loads(text)[2]["n"] == [2]


def test_keys_that_would_be_one_in_json_stay_two(converter):
    assert json.loads(only_text(converter.make_result({1: "a", "1": "b"}, ()))) == {
        "1": "a",
        "'1'": "b",
    }


def test_what_contains_itself_ends(converter):
    loop = [1]
    loop.append(loop)
    tree = {"self": None, "n": 1}
    tree["self"] = tree
    assert only_text(converter.make_result(loop, ())) == '[1,"..."]'
    assert only_text(converter.make_result(tree, ())) == '{"self":"...","n":1}'


def test_deep_nesting_ends(converter):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert "..." in only_text(converter.make_result(deep, ()))


@pytest.mark.parametrize("value", [Broken(), [Broken()], {"a": Broken()}])
def test_a_repr_that_raises_becomes_a_sentence(converter, value):
    text = only_text(converter.make_result(value, ()))
    assert "an object of type Broken whose repr failed: RuntimeError: no repr today" in text


def test_a_repr_runs_once(converter):
    runs = []

    class Counted:
        def __repr__(self):
            runs.append(1)
            return "counted"

    assert only_text(converter.make_result(Counted(), ())) == "counted"
    assert runs == [1]


def test_a_huge_list_shows_its_beginning_and_end(converter):
    text = only_text(converter.make_result(list(range(3_000_000)), ()))
    assert text.startswith("[0,1,2")
    assert text.endswith("2999999]")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (display.Markdown("**bold**"), "**bold**"),
        (display.HTML("<p>Hi &amp; <b>you</b></p><script>x()</script>"), "Hi & **you**"),
        (
            display.HTML("<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>"),
            "| a | b |\n|---|---|\n| 1 | 2 |",
        ),
        (display.JSON({"a": 1}), '{"a":1}'),
        (display.Math("x^2"), "$\\displaystyle x^2$"),
        (SimpleNamespace(a=1), '{"a":1}'),
    ],
)
def test_displays_become_the_text_that_says_most(converter, value, text):
    assert only_text(converter.make_result(value, ())) == text


def test_an_object_with_a_rich_representation_is_shown_by_it(converter):
    class Both:
        def _repr_png_(self):
            return PNG

        def _repr_markdown_(self):
            return "# text"

    assert kinds(converter.make_result(Both(), ())) == ["Image"]


def test_a_figure_becomes_one_picture_even_if_it_was_displayed_too(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    picture, _line = converter.make_result(figure, ()).content
    assert picture.data.startswith(b"\x89PNG")
    shown = Displayed({"image/png": base64.b64encode(picture.data).decode()})
    assert kinds(converter.make_result(figure, [shown])) == ["Image"]


@pytest.mark.parametrize("what", ["axes", "lines", "pair", "grid", "many"])
def test_what_plotting_functions_return_is_the_picture_of_its_figure(converter, plt, what):
    figure, grid = plt.subplots(1, 2)
    lines = grid[0].plot([1, 2])
    values = {
        "axes": grid[0],
        "lines": lines,
        "pair": (figure, grid[0]),
        "grid": grid,
        "many": [figure, figure],
    }
    assert kinds(converter.make_result(values[what], ())) == ["Image", "Text"]


def test_tables_and_pictures_within_a_collection_of_a_collection_are_shown(pandas, converter):
    frame = pandas.DataFrame({"a": [1]})
    table = only_text(converter.make_result(frame, ()))
    value = {"train": {"frame": frame, "rows": 1}, "test": [Image(PNG), 2], "rate": 0.5}
    content = converter.make_result(value, ()).content
    assert content == [
        Text(f"train:\nframe:\n{table}\n\nrows: 1\n\ntest:"),
        Image(PNG),
        Text("2\nrate: 0.5"),
    ]
    value = []
    value += [frame, value]
    assert kinds(converter.make_result(value, ())) == ["Text"]


def test_a_subfigure_is_shown_with_its_figure_and_an_empty_one_is_named(converter, plt):
    figure = plt.figure()
    parts = figure.subfigures(1, 2)
    parts[0].subplots().plot([1, 2])
    assert kinds(converter.make_result(parts[0], ())) == ["Image", "Text"]
    assert only_text(converter.make_result(plt.figure(), ())) == "[an empty figure]"


def test_blocks_of_content_and_other_values_mix_in_one_list(converter):
    value = [Text("see", audience=("user",)), Image(PNG, "image/jpeg"), "plain", {"a": 1}]
    result = converter.make_result(value, ())
    assert list(result.content) == [
        Text("see", audience=("user",)),
        Image(PNG, "image/png"),
        Text('plain\n{"a":1}'),
    ]


def test_an_item_that_does_not_tell_its_class_does_not_hide_the_others(converter):
    assert "shown" in only_text(converter.make_result(["shown", NoClass()], ()))


def test_a_str_of_a_subclass_is_cleaned_without_its_methods(converter):
    class Evil(str):  # noqa: SLOT000 - as users write them
        def __contains__(self, part):
            raise RuntimeError

        __iter__ = __len__ = __str__ = __repr__ = __contains__

    assert "plain" in str(converter.make_result([Evil("plain")], ()))
