"""Objects that could be read as data, but show themselves: they are shown as they say."""

import sys
from collections import UserDict, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import attrs
import pytest
from contents import only_text
from pydantic import BaseModel

from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.self_shown import (
    has_registered_format,
    shows_itself,
)
from mcp_notebook.settings.settings import Settings

np = pytest.importorskip("numpy")


class ShownAsHtml:
    def _repr_html_(self):
        return "<p>shown</p>"


class ListOfThem(ShownAsHtml, list):
    pass


class TupleOfThem(ShownAsHtml, tuple):
    __slots__ = ()


class SetOfThem(ShownAsHtml, set):
    pass


class DictOfThem(ShownAsHtml, dict):
    pass


class MappingOfThem(ShownAsHtml, UserDict):
    pass


class ArrayOfThem(ShownAsHtml, np.ndarray):
    pass


@dataclass
class Fields(ShownAsHtml):
    internals: Any = field(default_factory=lambda: [1, 2])


class Model(ShownAsHtml, BaseModel):
    internals: int = 1


@attrs.define
class Attrs(ShownAsHtml):
    internals: int = 1


class Named(namedtuple("Named", "internals"), ShownAsHtml):  # noqa: PYI024 - its own repr
    pass


class Typed(NamedTuple):
    internals: int

    _repr_html_ = ShownAsHtml._repr_html_


OF_EACH_KIND = [
    *(ListOfThem([1]), TupleOfThem([1]), SetOfThem([1]), DictOfThem(a=1), MappingOfThem(a=1)),
    *(Fields(), Model(), Attrs(), Named(1), Typed(1)),
    np.zeros(3).view(ArrayOfThem),
]


@pytest.mark.parametrize("value", OF_EACH_KIND, ids=lambda value: type(value).__name__)
def test_what_shows_itself_is_not_taken_apart(to_text, value):
    assert shows_itself(value)
    if not isinstance(value, np.ndarray):  # whose repr numpy wrote
        assert to_text(value) == "shown"
    assert to_text([value, 1]).startswith(("shown", "ArrayOfThem"))


def test_a_repr_that_was_written_says_more_than_html(to_text):
    @dataclass
    class Dataset:
        internals: int = 1

        def _repr_html_(self):
            return "<p>shown</p>"

        def __repr__(self):
            return "<Dataset> Dimensions: 50"

    assert to_text(Dataset()) == "<Dataset> Dimensions: 50"


def test_a_mime_bundle_of_a_mapping_is_what_it_shows(to_text):
    class Shown(dict):
        def _repr_mimebundle_(self, **_):
            return {"text/markdown": "**shown**", "text/plain": "plain"}

    assert to_text(Shown(a=1)) == "**shown**"


def test_a_mapping_that_displays_itself_is_not_shown_a_second_time(convert, capsys):
    class Shown(dict):
        def _ipython_display_(self):
            sys.stdout.write("displayed")

    assert [block.text for block in convert(Shown(a=1))] == ["Done: the tool returned nothing."]
    assert capsys.readouterr().out == "displayed"


@pytest.mark.parametrize("output", [None, 1])
def test_a_mapping_whose_display_method_says_nothing_is_data(to_text, output):
    class Silent(dict):
        def _repr_html_(self):
            return None

    assert to_text(Silent(a=output)) in ('{"a":null}', '{"a":1}')


def test_a_formatter_that_is_registered_for_a_dataclass_is_taken(to_text, formatter):
    @dataclass
    class Reading:
        value: float

    html = formatter.formatters["text/html"]
    html.for_type(Reading, lambda reading: f"<p>{reading.value} mm</p>")
    assert to_text(Reading(1.5)) == "1.5 mm"


def test_a_generated_repr_is_left_out_of_a_display(converter):
    data, _ = converter.format_display(Fields())
    assert data == {"text/html": "<p>shown</p>"}


@pytest.mark.slow
@pytest.mark.needs("xarray")
def test_an_xarray_dataset_keeps_its_dimensions_and_attributes(to_text):
    xarray = pytest.importorskip("xarray")
    dataset = xarray.Dataset({"t": (("x", "y"), np.zeros((50, 40)))}, attrs={"title": "demo"})
    text = to_text(dataset)
    assert "Dimensions:  (x: 50, y: 40)" in text
    assert "title:    demo" in text
    assert len(text) < 500


@pytest.mark.filterwarnings("ignore:Pandas doesn't allow")
def test_a_table_of_pandas_that_has_its_own_markdown_is_shown_by_it(pandas, converter, monkeypatch):
    class Derived(pandas.DataFrame):
        def _repr_markdown_(self):
            return "derived"

    frame = pandas.DataFrame({"_repr_markdown_": [1], "a": [2]})
    assert "2" in only_text(converter.make_result(frame, ()))
    assert only_text(converter.make_result(Derived({"a": [1]}), ())) == "derived"
    object.__setattr__(frame, "_repr_markdown_", lambda: "own")
    assert only_text(converter.make_result(frame, ())) == "own"
    series = pandas.Series([1])
    monkeypatch.setattr(pandas.Series, "_repr_markdown_", lambda _: "patched", raising=False)
    assert only_text(converter.make_result(series, ())) == "patched"


def test_a_formatter_counts_that_is_registered_for_the_object_a_base_or_a_name(formatter):
    class Base:
        pass

    class Derived(Base):
        pass

    markdown = formatter.formatters["text/markdown"]
    converter = Converter(formatter.format, Settings())
    value = Derived()
    markdown.for_type_by_name(Base.__module__, Base.__name__, lambda *_: "by name")
    assert only_text(converter.make_result(value, ())) == "by name"
    markdown.for_type(Derived, lambda *_: "by class")
    assert only_text(converter.make_result(value, ())) == "by class"
    markdown.singleton_printers[id(value)] = lambda *_: "by identity"
    assert only_text(converter.make_result(value, ())) == "by identity"


def test_objects_are_rendered_whose_class_has_no_hash(formatter):
    class Meta(type):
        __hash__ = None

    class Odd(metaclass=Meta):
        def __repr__(self):
            return "odd"

    assert not has_registered_format(formatter.format, Odd())
