"""What values, displays and failures become, with IPython's real formatters."""

import base64
import dataclasses
import enum
import io
import json
import sys
import uuid
from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython import display
from IPython.core.formatters import DisplayFormatter
from pydantic import BaseModel

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.results.converter import NOTHING, Converter
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.settings import Settings
from mcp_notebook.wire import content_blocks

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def formatter():
    return DisplayFormatter()


@pytest.fixture
def converter(formatter):
    return Converter(formatter.format, Settings())


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def texts(result):
    return [block.text for block in result.content if isinstance(block, Text)]


def only_text(result):
    [block] = result.content
    return block.text


def kinds(result):
    return [type(block).__name__ for block in result.content]


class Broken:
    def __repr__(self):
        raise RuntimeError("no repr today")


class Endless:
    def __repr__(self):
        return repr(self)


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    label: str | None = None


@dataclasses.dataclass
class Segment:
    start: Point
    length: float


def test_a_tool_that_returns_nothing_says_so(converter):
    assert only_text(converter.make_result(None, ())) == NOTHING


def test_nothing_is_added_to_what_a_tool_without_a_value_printed(converter):
    result = converter.make_result(None, [Printed("a"), Printed("b\n"), Printed("c\n")])
    assert only_text(result) == "ab\nc"


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


def test_a_formatter_of_the_users_counts_for_a_displayed_table(pandas, formatter, converter):
    formatter.formatters["text/markdown"].for_type(pandas.DataFrame, lambda _: "**mine**")
    shown = Displayed(*converter.format_display(pandas.DataFrame({"a": [1]})))
    assert only_text(converter.make_result(None, [shown])) == "**mine**"


def test_html_that_the_user_registered_for_tables_counts(pandas, formatter, converter):
    formatter.formatters["text/html"].for_type(pandas.DataFrame, lambda _: "<b>mine</b>")
    assert only_text(converter.make_result(pandas.DataFrame({"a": [1]}), ())) == "**mine**"


def test_a_table_displayed_in_some_types_only_is_shown_in_these(pandas, converter):
    data, metadata = converter.format_display(pandas.DataFrame({"a": [1]}), ["text/html"])
    assert set(data) == {"text/html"}
    assert not metadata


def test_a_result_within_a_value_gives_its_content(converter):
    own = Result([Text("a", audience="user"), [1, 2]])
    expected = [Text("a", audience="user"), Text("[1, 2]")]
    assert converter.make_result([own], []).content == expected
    assert converter.make_result(Result([own, Text("b")]), []).content == [*expected, Text("b")]
    assert texts(converter.make_result({"x": own}, []))[1:] == ["a", "[1, 2]"]


def test_a_display_made_while_the_value_is_converted_is_part_of_the_result(converter):
    outputs = []

    class ShowsItself:
        def _ipython_display_(self):
            outputs.append(Displayed({"text/markdown": "**me**"}))

    assert only_text(converter.make_result(ShowsItself(), lambda: outputs)) == "**me**"


def test_a_progress_bar_leaves_its_last_state_only(converter):
    result = converter.make_result(
        None, [Printed("\r 10%"), Printed("\r 50%"), Printed("\r100%\nok\n")]
    )
    assert only_text(result) == "100%\nok"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text", "a text"),
        (True, "true"),
        (3, "3"),
        (0.1, "0.1"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ({"a": 1, "b": [1, None]}, '{"a": 1, "b": [1, null]}'),
        ((1, "x"), '[1, "x"]'),
        ({7}, "[7]"),
        (Colour.RED, "red"),
        (date(2024, 2, 29), "2024-02-29"),
        (timedelta(days=1, hours=2), "P1DT2H"),
        (Decimal("1.50"), "1.50"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (PurePosixPath("/tmp/x"), "/tmp/x"),
        (b"bytes", "bytes"),
        (b"\xff\xfe", "<2 bytes: ff fe>"),
        (Point(x=1), '{"x": 1, "label": null}'),
        (Segment(Point(x=1), 2.5), '{"start": {"x": 1, "label": null}, "length": 2.5}'),
        ({date(2024, 1, 1): 1, (1, "a"): 2, None: 3}, '{"2024-01-01": 1, "1, a": 2, "null": 3}'),
        ((n * n for n in range(4)), "[0, 1, 4, 9]"),
        (range(3), "[0, 1, 2]"),
        pytest.param(10**5000, "<an int of 16,610 bits, too long to print>", id="huge int"),
    ],
)
def test_plain_values_become_readable_text(converter, value, text):
    assert only_text(converter.make_result(value, ())) == text


def test_a_text_that_a_model_could_not_take_is_replaced(converter):
    assert only_text(converter.make_result("\x1b[31mred\x1b[0m \ud800\0", ())) == "red \ufffd\ufffd"
    assert only_text(converter.make_result(" \n", ())) == "Done: the tool returned an empty text."


def test_longer_json_has_a_line_for_each_item(converter):
    text = only_text(converter.make_result([{"name": "x" * 30, "n": [n]} for n in range(3)], ()))
    assert len(text.splitlines()) == 5
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
    assert only_text(converter.make_result(loop, ())) == '[1, "..."]'
    assert only_text(converter.make_result(tree, ())) == '{"self": "...", "n": 1}'


def test_deep_nesting_ends(converter):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert "..." in only_text(converter.make_result(deep, ()))


@pytest.mark.parametrize("value", [Broken(), [Broken()], {"a": Broken()}])
def test_a_repr_that_raises_becomes_a_sentence(converter, value):
    text = only_text(converter.make_result(value, ()))
    assert "an object of type Broken whose repr failed: RuntimeError: no repr today" in text


def test_a_repr_that_recurses_becomes_a_sentence(converter):
    assert "RecursionError" in only_text(converter.make_result(Endless(), ()))


def test_a_repr_runs_once(converter):
    runs = []

    class Counted:
        def __repr__(self):
            runs.append(1)
            return "counted"

    assert only_text(converter.make_result(Counted(), ())) == "counted"
    assert runs == [1]


def test_exiting_from_a_repr_hurts_nothing(converter):
    class Exits:
        def __repr__(self):
            sys.exit(3)

    assert "SystemExit: 3" in only_text(converter.make_result(Exits(), ()))


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


def test_a_huge_list_shows_its_beginning_and_end(converter):
    text = only_text(converter.make_result(list(range(3_000_000)), ()))
    assert text.startswith("[0, 1, 2")
    assert text.endswith("2999999]")


def test_an_endless_generator_is_collected_up_to_a_bound(converter):
    def forever():
        while True:
            yield 1

    assert "only the first 1,000 items" in only_text(converter.make_result(forever(), ()))


def test_a_generator_that_raises_is_a_failure(converter):
    def fails():
        yield 1
        raise ValueError("midway")

    result = converter.make_result(fails(), ())
    assert result.is_error
    assert only_text(result).startswith("ValueError: midway")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (display.Markdown("**bold**"), "**bold**"),
        (display.HTML("<p>Hi &amp; <b>you</b></p><script>x()</script>"), "Hi & **you**"),
        (
            display.HTML("<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>"),
            "| a | b |\n|---|---|\n| 1 | 2 |",
        ),
        (display.JSON({"a": 1}), '{"a": 1}'),
        (display.Math("x^2"), "$\\displaystyle x^2$"),
        (SimpleNamespace(a=1), "namespace(a=1)"),
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


def test_a_mime_bundle_counts(converter):
    class Bundle:
        def _repr_mimebundle_(self, **_options):
            return {"text/markdown": "# from the bundle", "text/plain": "plain"}

    assert only_text(converter.make_result(Bundle(), ())) == "# from the bundle"


def test_a_formatter_that_the_user_registered_counts(formatter):
    formatter.formatters["text/markdown"].for_type(Point, lambda point, *_: f"**P{point.x}**")
    converter = Converter(formatter.format, Settings())
    assert only_text(converter.make_result(Point(x=4), ())) == "**P4**"


def test_the_specification_of_an_interactive_plot_does_not_flood(converter):
    spec = {"data": [{"x": n} for n in range(100_000)]}
    bundle = {"application/vnd.vegalite.v5+json": spec, "text/plain": "<VegaLite 5 object>"}
    text = only_text(converter.make_result(None, [Displayed(bundle)]))
    assert "a Vega-Lite chart, not drawn here: it has 1," in text
    assert len(text) < 6_000


def test_a_display_that_nobody_can_read_is_named(converter):
    text = only_text(converter.make_result(None, [Displayed({"application/x-odd": b"\0"})]))
    assert text == "[a display that has no text: application/x-odd]"


def test_a_sound_in_html_becomes_audio(converter):
    np = pytest.importorskip("numpy")
    [block] = converter.make_result(display.Audio(np.ones(50), rate=8_000), ()).content
    assert isinstance(block, Audio)
    assert block.data.startswith(b"RIFF")


def test_a_figure_becomes_one_picture_even_if_it_was_displayed_too(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    [picture] = converter.make_result(figure, ()).content
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
    assert kinds(converter.make_result(values[what], ())) == ["Image"]


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


def test_a_colour_bar_is_shown_as_its_figure(converter, plt):
    figure, axes = plt.subplots()
    bar = figure.colorbar(axes.imshow([[1, 2]]))
    assert converter.make_result(bar, ()) == converter.make_result(figure, ())
    assert kinds(converter.make_result(axes.pie([1, 2]), ())) == ["Image"]


def test_a_dict_of_parts_of_one_figure_is_its_picture(converter, plt):
    figure, axes = plt.subplots()
    assert kinds(converter.make_result(axes.boxplot([[1, 2, 3]]), ())) == ["Image"]
    assert kinds(converter.make_result({"left": figure, "right": [1]}, ()))[:2] == ["Text", "Image"]
    assert kinds(converter.make_result({"only": axes}, ())) == ["Text", "Image"]


def test_a_list_of_figures_is_their_pictures(converter, plt):
    figures = []
    for n in range(3):
        figure, axes = plt.subplots()
        axes.plot([n, 1])
        figures.append(figure)
    assert kinds(converter.make_result(figures, ())) == ["Image", "Image", "Image"]


def test_a_subfigure_is_shown_with_its_figure_and_an_empty_one_is_named(converter, plt):
    figure = plt.figure()
    parts = figure.subfigures(1, 2)
    parts[0].subplots().plot([1, 2])
    assert kinds(converter.make_result(parts[0], ())) == ["Image"]
    assert only_text(converter.make_result(plt.figure(), ())) == "[an empty figure]"


def test_large_pictures_are_scaled_down_and_say_so(converter):
    pil = pytest.importorskip("PIL.Image")
    result = converter.make_result(pil.new("CMYK", (4_000, 1_000)), ())
    assert kinds(result) == ["Image", "Text"]
    assert pil.open(io.BytesIO(result.content[0].data)).size == (1_568, 392)
    assert "from 4000x1000 to 1568x392" in result.content[1].text


def test_of_too_many_pictures_the_first_and_the_last_are_kept(converter):
    pil = pytest.importorskip("PIL.Image")
    result = converter.make_result([pil.new("L", (n + 1, 1)) for n in range(20)], ())
    pictures = [block for block in result.content if isinstance(block, Image)]
    sizes = [pil.open(io.BytesIO(picture.data)).width for picture in pictures]
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 20]
    assert texts(result) == ["[12 of 20 pictures are left out.]"]


def test_bytes_that_are_a_picture_are_shown(converter):
    assert converter.make_result(PNG, ()).content == [Image(PNG)]


def test_an_image_whose_bytes_are_no_picture_becomes_a_sentence(converter):
    text = only_text(converter.make_result(Image(b"nope"), ()))
    assert text == (
        "[4 bytes beginning with 6e 6f 70 65 are not a picture: give PNG, JPEG, WebP or GIF.]"
    )


def test_an_image_made_of_something_else_becomes_a_sentence(converter):
    text = only_text(converter.make_result(Image("chart.png"), ()))
    assert text == (
        "[Image(data) takes a picture's encoded bytes, a PIL image or an array, not a str: "
        "for a file, Image(pathlib.Path(path).read_bytes()).]"
    )


def test_blocks_of_content_and_other_values_mix_in_one_list(converter):
    value = [Text("see", audience=("user",)), Image(PNG, "image/jpeg"), "plain", {"a": 1}]
    result = converter.make_result(value, ())
    assert list(result.content) == [
        Text("see", audience=("user",)),
        Image(PNG, "image/png"),
        Text('plain\n{"a": 1}'),
    ]


def test_what_a_block_is_made_of_keeps_what_the_block_says(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    said = {"audience": ("user",), "priority": 0.5, "last_modified": "2025-01-12"}
    [picture] = converter.make_result(Image(figure, **said), ()).content
    assert picture == Image(picture.data, "image/png", **said)
    pandas = pytest.importorskip("pandas")
    [table] = converter.make_result(Text(pandas.DataFrame({"a": [1]}), **said), ()).content
    assert table == Text(table.text, **said)
    assert "DataFrame: 1 row" in table.text
    assert converter.make_result(Text(5, **said), ()).content == [Text("5", **said)]
    assert converter.make_result(Text([1, "a"]), ()).content == [Text('[1, "a"]')]


def test_a_block_of_a_class_that_checks_nothing_is_checked(converter):
    @dataclasses.dataclass(frozen=True)
    class Own(Text):
        note: str = ""

        def __post_init__(self):
            pass

    assert converter.make_result(Own("a", "n", audience="user"), ()).content == [
        Text("a", audience="user")
    ]
    text = only_text(converter.make_result(Own("a", audience="dog"), ()))
    assert text.startswith("A value of type Own cannot be shown: ValueError: `audience` is 'user'")


def test_a_dict_with_pictures_names_each_of_them(converter):
    result = converter.make_result({"n": 1, "plot": Image(PNG)}, ())
    assert kinds(result) == ["Text", "Image"]
    assert texts(result) == ["n: 1\nplot:"]


def test_a_result_is_passed_on_with_its_parts_made_fit(converter):
    given_ = Result(
        ["text", Resource("notebook:///x", "\ud800")],
        structured={"a": float("nan"), "when": date(2024, 1, 1)},
        is_error=True,
        meta={"org.example/x": {1}},
    )
    assert converter.make_result(given_, ()) == Result(
        [Text("text"), Resource("notebook:///x", "\ufffd")],
        structured={"a": None, "when": "2024-01-01"},
        is_error=True,
        meta={"org.example/x": [1]},
    )


def test_a_result_with_structured_content_alone_has_its_text_too(converter):
    assert only_text(converter.make_result(Result(structured={"a": 1}), ())) == '{"a": 1}'


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


@settings(deadline=None, max_examples=60)
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
    message.model_dump_json().encode()
    json.dumps(result.structured, allow_nan=False)
    assert list(content_blocks.unpack_result(message, attachments).content) == list(result.content)


class NoClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")


def test_a_value_that_does_not_tell_its_class_has_a_sentence(converter):
    text = only_text(converter.make_result(NoClass(), ()))
    assert text == "A value of type NoClass cannot be shown: RuntimeError: no class"


def test_an_item_that_does_not_tell_its_class_does_not_hide_the_others(converter):
    assert "shown" in only_text(converter.make_result(["shown", NoClass()], ()))


def test_a_str_of_a_subclass_is_cleaned_without_its_methods(converter):
    class Evil(str):  # noqa: SLOT000 - as users write them
        def __contains__(self, part):
            raise RuntimeError

        __iter__ = __len__ = __str__ = __repr__ = __contains__

    assert "plain" in str(converter.make_result([Evil("plain")], ()))
