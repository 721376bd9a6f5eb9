"""Converters of an author's own: what they are for, and what becomes of what they return."""

import functools
import sys
import types
from datetime import datetime

import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import Image, Resource, Result, Text
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.results.converter import NOTHING, Converter
from mcp_notebook.kernel.results.custom_types import CustomTypes
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.settings.settings import Settings

PNG_LIKE = b"\x89PNG\r\n\x1a\n"


class Shape:
    pass


class Square(Shape):
    pass


@pytest.fixture
def custom_types():
    return CustomTypes()


@pytest.fixture
def made(custom_types):
    converter = Converter(DisplayFormatter().format, Settings(), custom_types=custom_types)
    return lambda value, outputs=(): list(converter.make_result(value, outputs).content)


@pytest.fixture
def said(made):
    def text(value):
        [block] = made(value)
        return block.text

    return text


def test_a_value_of_the_type_is_given_as_what_the_function_returns(custom_types, said):
    custom_types.set(Shape, lambda shape: f"a {type(shape).__name__}")
    assert said(Shape()) == "a Shape"
    custom_types.set(Shape, lambda _: {"sides": 4})
    assert said(Shape()) == '{"sides":4}'
    custom_types.set(Shape, lambda _: None)
    assert said(Shape()) == NOTHING
    custom_types.set(Shape, lambda _: (n for n in range(3)))
    assert said(Shape()) == "[0,1,2]"
    custom_types.set(Shape, lambda _: pd.DataFrame({"a": [1]}))
    assert "DataFrame: 1 row" in said(Shape())


def test_what_it_returns_may_be_content(custom_types, made):
    custom_types.set(Shape, lambda _: [Text("a", audience="user"), Resource("a:b", "c"), "d"])
    expected = [Text("a", audience="user"), Resource("a:b", "c"), Text("d")]
    assert made(Shape()) == expected
    custom_types.set(Shape, lambda _: Result(expected, is_error=True))
    assert made(Shape()) == expected
    assert made(Result([Shape()])) == expected


def test_subclasses_count_and_the_nearest_class_wins(custom_types, said):
    custom_types.set(Shape, lambda _: "shape")
    assert said(Square()) == "shape"
    custom_types.set(Square, lambda _: "square")
    assert said(Square()) == "square"
    assert said(Shape()) == "shape"
    custom_types.set(Square, None)
    custom_types.set(Square, None)
    assert said(Square()) == "shape"


def test_items_of_lists_and_dicts_are_converted_too(custom_types, said):
    custom_types.set(Shape, lambda _: "shape")
    assert said([1, Square(), "b"]) == "1\nshape\n\nb"
    assert said({"a": Shape(), "b": 2}) == "a:\nshape\n\nb: 2"
    assert said(Text(Shape())) == "shape"


def test_it_stands_in_for_what_we_do_ourselves(custom_types, said):
    custom_types.set(pd.DataFrame, lambda frame: f"{len(frame)} rows")
    custom_types.set(datetime, lambda time: time.year)
    assert said(pd.DataFrame({"a": [1, 2]})) == "2 rows"
    custom_types.set(str, str.upper)
    assert said("text") == "TEXT"
    assert said(datetime(2024, 1, 1)) == "2024"  # noqa: DTZ001 - what is tested


def test_what_it_returns_does_not_come_back_to_it(custom_types, said):
    custom_types.set(pd.DataFrame, lambda frame: frame.head(1))
    assert "DataFrame: 1 row x 1 column" in said(pd.DataFrame({"a": range(9)}))
    custom_types.set(list, lambda items: [*items, items])
    assert said([1, 2]) == "[1,2,[1,2]]"
    custom_types.set(Shape, lambda _: Square())
    custom_types.set(Square, lambda _: Shape())
    assert "Square" in said(Square())


def test_a_value_that_it_gives_back_is_shown_as_without_it(custom_types, said):
    custom_types.set(int, lambda number: "many" if number > 10 else number)
    assert said(5) == "5"
    assert said(50) == "many"
    assert said([5, 50]) == "5\nmany"


def test_one_that_fails_is_a_sentence(custom_types, made, said):
    def summary(shape):
        return shape.area

    custom_types.set(Shape, summary)
    assert said(Square()) == (
        "[The converter `summary` of Shape failed: AttributeError: 'Square' object has no "
        "attribute 'area'. `registry.convert(Shape, None)` removes it.]"
    )
    assert made(["first", Shape()])[0].text.startswith("first\n[The converter")
    custom_types.set(Shape, lambda _: sys.exit(3))
    assert "SystemExit: 3" in said(Shape())

    def stopped(_):
        raise KeyboardInterrupt

    custom_types.set(Shape, stopped)
    with pytest.raises(KeyboardInterrupt):
        made(Shape())


def test_displays_and_content_are_not_converted(custom_types, made):
    custom_types.set(object, lambda _: "converted")
    assert made(None, [Displayed({"text/plain": "shown"})]) == [Text("shown")]
    assert made(Text("text")) == [Text("text")]
    assert made(Resource("a:b", "c")) == [Resource("a:b", "c")]


def test_a_type_may_be_named_before_its_library_is_loaded(custom_types, said, monkeypatch):
    custom_types.set("shapes.solid.Cube", lambda _: "cube")
    assert said(1) == "1"
    module = types.ModuleType("shapes.solid")
    monkeypatch.setitem(sys.modules, "shapes.solid", module)
    assert said(1) == "1"
    for _ in range(2):  # the name is followed when the class is defined anew
        module.Cube = type("Cube", (Shape,), {})
        assert said(module.Cube()) == "cube"
        assert said(type("Dice", (module.Cube,), {})()) == "cube"
    module.Cube = "no class"
    assert said(1) == "1"
    custom_types.set("pandas.DataFrame", len)
    assert said(pd.DataFrame({"a": [1, 2]})) == "2"
    custom_types.set("pandas.DataFrame", None)
    assert "DataFrame: 1 row" in said(pd.DataFrame({"a": [1]}))


class Callable:
    async def __call__(self, value):
        return value


async def coroutine(value):
    return value


@pytest.mark.parametrize(
    ("kind", "function", "said"),
    [
        (
            5,
            str,
            "a class or its full name, 'pandas.DataFrame', not an object of type int; call it",
        ),
        (5, str, "call it once for each"),
        ((int, str), str, "not an object of type tuple"),
        (list[int], str, "not an object of type GenericAlias"),
        (int | str, str, "not an object of type UnionType"),
        (None, str, "not an object of type NoneType"),
        ("DataFrame", str, "'pandas.DataFrame', not 'DataFrame'."),
        ("a b.C", str, "not 'a b.C'"),
        (type(None), str, "does not apply to values of type NoneType"),
        (Text, str, "does not apply to values of type Text"),
        (Result, str, "does not apply to values of type Result"),
        (int, "text", "`registry.convert(int, ...)` takes a function of one argument"),
        (int, lambda: 1, "with one argument, the value: too many positional arguments"),
        (int, lambda _a, _b: 1, "missing a required argument: '_b'"),
        (int, coroutine, "cannot be a coroutine function; await in the tool"),
        (int, Callable(), "cannot be a coroutine function"),
    ],
)
def test_an_invalid_converter_is_refused(custom_types, kind, function, said):
    with pytest.raises(DefinitionError) as caught:
        custom_types.set(kind, function)
    assert said in str(caught.value)
    assert custom_types.find(5) is None


def test_any_callable_of_one_argument_will_do(custom_types, said):
    for function in (repr, functools.partial(str.__mod__, "%03d"), "{:03}".format, Fraction):
        custom_types.set(int, function)
        assert said(7) in ("7", "007", "7/1")


class Fraction:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"{self.number}/1"


def test_ipythons_formatters_convert_as_well():
    formatter = DisplayFormatter()
    formatter.formatters["text/markdown"].for_type(Shape, lambda _: "**shape**")
    formatter.formatters["image/png"].for_type(Square, lambda _: (_picture(), {}))
    converter = Converter(formatter.format, Settings())
    assert converter.make_result(Shape(), ()).content == [Text("**shape**")]
    assert converter.make_result(Square(), ()).content == [Image(_picture(), "image/png")]


def _picture():
    import io  # noqa: PLC0415 - for this alone

    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (2, 2)).save(data := io.BytesIO(), "png")
    return data.getvalue()
