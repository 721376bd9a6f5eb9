"""Kinds of values whose meaning a general reader keeps: names, notes, units, nanoseconds, secrets.

The libraries are examples of a kind; no rule is for one of them alone.
"""

import dataclasses
import enum
import re
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, Field

from mcp_notebook.kernel.results.tables.outline import summarize_items
from mcp_notebook.kernel.safe.to_json import to_short_json

np = pytest.importorskip("numpy")

PASSWORD = "hunter2"
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


class Auto(enum.Enum):
    RED = enum.auto()
    BLUE = enum.auto()


class Code(enum.IntEnum):
    FOUND = 302
    GONE = 410


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@dataclasses.dataclass
class Login:
    user: str
    password: str = dataclasses.field(default=PASSWORD, repr=False)


class Inner(BaseModel):
    user: str = "ada"
    password: str = Field(default=PASSWORD, repr=False)


class Outer(BaseModel):
    logins: list[Inner]


class Thing:
    def __init__(self):
        self.size = 3
        self.api_key = PASSWORD
        self._hidden = PASSWORD


class Network:
    rate = 0.5
    secret_key = PASSWORD

    class Layer:
        pass

    def __init__(self):
        self.layers = [3, 5]

    def __call__(self, value):
        return value

    def __iter__(self):
        return iter(self.layers)

    @property
    def depth(self):
        return 1 / 0


class Fitted(NamedTuple):
    model: str
    table: Any


# As classes of a notebook have it.
Thing.__module__ = Network.__module__ = Network.Layer.__module__ = "__main__"


class Elsewhere:
    def __init__(self):
        self.size = 3


def test_a_member_of_an_enumeration_that_only_counts_is_its_name(to_text):
    assert to_text(Auto.RED) == "RED"
    assert (
        to_text([Auto.BLUE, Code.GONE, Access.READ | Access.WRITE]) == '["BLUE",410,"READ|WRITE"]'
    )
    assert to_text({Auto.RED: 1}) == '{"RED":1}'


def test_a_member_is_written_alike_in_cells_and_summaries(convert, pandas):
    text = convert(pandas.DataFrame({"c": [Auto.RED, Auto.BLUE] * 40}))[0].text
    assert "c object: 2 distinct, RED (40), BLUE (40)" in text
    assert "\nRED\nBLUE\n" in text


@pytest.mark.parametrize(
    "make", [lambda item: item, lambda item: [item, item], lambda item: {1: item}]
)
@pytest.mark.parametrize("value", [Login("ada"), Inner(), Outer(logins=[Inner()]), Thing()])
def test_a_field_that_is_kept_out_of_the_repr_is_not_sent(value, make, convert):
    texts = " ".join(block.text for block in convert(make(value)))
    assert PASSWORD not in texts
    assert "ada" in texts or "size" in texts


def test_the_names_of_a_sequence_of_structs_are_kept(to_text):
    assert to_text(time.gmtime(0)).startswith('{"tm_year":1970,"tm_mon":1,')
    text = to_text(Path(__file__).stat())
    assert '"st_size":' in text
    assert '"st_mtime_ns":' in text


@pytest.mark.parametrize("make", [lambda item: item, lambda item: [item], lambda item: {"k": item}])
@pytest.mark.parametrize(
    "value",
    [
        object(),
        Thing(),
        Elsewhere(),
        Elsewhere().__init__,
        lambda: 1,
        open,
        (number for number in ()).close,
    ],
)
def test_no_address_is_in_a_result(value, make, to_text):
    assert not re.search("0x[0-9a-f]{6}", to_text(make(value)))


def test_an_object_of_the_notebook_is_its_public_attributes(to_text, pandas):
    assert to_text(Thing()) == '{"size":3}'
    assert to_text(pandas.DataFrame({"t": [Thing()]})).endswith("Thing(size=3)")
    assert to_text(Network()) == '{"rate":0.5,"layers":[3,5]}'
    assert to_text([Elsewhere()]) == f'["<{__name__}.Elsewhere object>"]'


def test_a_record_with_a_table_is_shown_by_the_names_of_its_parts(to_text, pandas):
    frame = pandas.DataFrame({"a": [1]})
    thing = Thing()
    thing.table = frame
    shown = to_text(frame)
    for value in (Fitted("m", frame), SimpleNamespace(model="m", table=frame)):
        assert to_text(value) == f"model: m\ntable:\n\n{shown}"
    assert to_text(thing) == f"size: 3\ntable:\n\n{shown}"
    login = Login("ada")
    del login.user
    assert "Login" in to_text(login)


def test_a_registered_format_of_a_record_comes_before_its_parts(to_text, formatter, pandas):
    formatter.formatters["text/markdown"].for_type(Fitted, lambda _: "**fitted**")
    assert to_text(Fitted("m", pandas.DataFrame({"a": [1]}))) == "**fitted**"


def test_a_large_array_in_a_tuple_is_its_shape_and_a_summary(convert):
    large, *_, small = convert((np.arange(2_000.0).reshape(-1, 2), np.zeros(3)))
    assert large.text.startswith("array of shape (1000, 2), float64: 0.0 to 1999.0, mean 999.5")
    assert small.text == "[0.0,0.0,0.0]"


def test_the_notes_of_an_exception_are_kept(to_text):
    error = ValueError("bad")
    error.add_note("look at row 5")
    assert to_text(error) == "ValueError('bad')\nlook at row 5"
    assert to_text([ExceptionGroup("all", [error])]).endswith('\\nlook at row 5"]')


def test_a_set_is_in_the_same_order_in_each_process(to_text, pandas):
    assert to_text({"pear", "fig", "apple"}) == '["apple","fig","pear"]'
    assert "{'apple', 'fig'}" in to_text(pandas.DataFrame({"s": [{"fig", "apple"}]}))


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("dtype", ["duration", "datetime", "time"])
def test_nanoseconds_are_in_the_summary(dtype, convert):
    import polars as pl  # noqa: PLC0415 - the mark says that it is there

    kinds = {
        "duration": pl.Duration("ns"),
        "datetime": pl.Datetime("ns"),
        "time": pl.Time,
    }
    series = pl.Series("t", range(60)).cast(kinds[dtype])
    for table in (pl.DataFrame([series]), pl.DataFrame([series]).to_arrow()):
        assert re.search(r"^t .*: .* to .*00\.000000059$", convert(table)[0].text, re.MULTILINE)


@pytest.mark.needs("pyarrow")
def test_nanoseconds_of_times_of_day_are_kept_in_pandas(convert, pandas):
    column = pandas.array(range(60), dtype="time64[ns][pyarrow]")
    text = convert(pandas.DataFrame({"t": column}))[0].text
    assert "t time64[ns][pyarrow]: 00:00:00 to 00:00:00.000000059" in text
    assert text.endswith("00:00:00.000000059")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([MOMENT, MOMENT.replace(tzinfo=None), None], "2 distinct"),
        ([Decimal("1.5"), Decimal("NaN"), None], "30 NaN, always 1.5"),
        ([Decimal("1.5"), Decimal("sNaN"), None], "30 NaN, always 1.5"),
        ([timedelta(1), "a", None], "2 distinct"),
    ],
)
def test_what_is_missing_is_told_where_values_cannot_be_compared(values, said):
    short, _ = to_short_json(values * 30, 1_000, 10, summarize_items)
    [note] = [item for item in short if str(item).startswith("...")]
    assert "all: 30 missing" in note
    assert said in note


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda np: np.array([None, "a", "b"] * 300, dtype=object), "300 missing, 2 distinct"),
        (lambda np: np.array(["a", "b"] * 300), "2 distinct, a (300), b (300)"),
    ],
)
def test_an_array_of_texts_is_summarized(make, said, convert):
    assert said in convert(make(pytest.importorskip("numpy")))[0].text


def test_intervals_are_counted(convert, pandas):
    cut = pandas.cut(pandas.Series([1.0, 2, 3, None] * 30), 3)
    assert ": 30 missing, 3 distinct, (0.998, 1.667] (30)" in convert(cut.to_frame("c"))[0].text


def test_short_floats_have_their_own_digits_in_the_summary(convert, pandas):
    column = pandas.array([123456.789, 2.5] * 40, dtype="Float32")
    text = convert(pandas.DataFrame({"x": column}))[0].text
    assert "x Float32: 2.5 to 123456.79," in text


def test_durations_are_written_alike(to_text, pandas):
    numpy = pytest.importorskip("numpy")
    values = {"a": timedelta(hours=5), "b": pandas.Timedelta("5h"), "c": numpy.timedelta64(5, "h")}
    assert to_text(values) == '{"a":"PT5H","b":"PT5H","c":"PT5H"}'
    assert (
        to_text([numpy.timedelta64("NaT", "s"), numpy.timedelta64(5, "M")]) == '[null,"5 months"]'
    )


class Quantity:
    """An array with a unit, which warns when it is made a bare array."""

    def __init__(self, magnitude, unit):
        self.magnitude, self.unit = magnitude, unit
        self.shape = magnitude.shape

    def __array__(self, *_args, **_options):
        raise UserWarning("the unit is lost")

    def __repr__(self):
        return f"<Quantity {self.magnitude} {self.unit}>"

    def _repr_latex_(self):
        return "$ & & & $"


def test_an_array_with_a_unit_has_its_numbers_and_its_unit(convert):
    numpy = pytest.importorskip("numpy")
    text = convert(Quantity(numpy.arange(2_000.0), "m"))[0].text
    assert text.startswith(
        "Quantity of shape (2000,), float64: 0.0 to 1999.0, mean 999.5\n<Quantity"
    )
    assert text.endswith(" m>")
    assert convert(Quantity(numpy.arange(3), "m"))[0].text == "<Quantity [0 1 2] m>"


@pytest.mark.needs("scipy")
def test_a_sparse_array_of_three_dimensions_is_its_elements(convert):
    from scipy import sparse  # noqa: PLC0415 - the mark says that it is there

    places = ([0, 1], [0, 1], [5, 6])
    texts = convert(sparse.coo_array(([1.0, 2.0], places), shape=(10, 10, 10)))
    assert texts[0].text.split()[-8:] == ["(0,", "0,", "5)", "1.0", "(1,", "1,", "6)", "2.0"]


class Tree(list):
    """A tree whose picture needs a library that is missing."""

    def __init__(self, label, items):
        super().__init__(items)
        self.label = label

    def __repr__(self):
        return f"Tree({self.label!r}, {list(self)!r})"

    def _repr_svg_(self):
        raise ModuleNotFoundError("svgling")


def test_a_list_with_a_label_is_its_own_text(to_text):
    assert to_text(Tree("S", [Tree("V", ["ran"])])) == "Tree('S', [Tree('V', ['ran'])])"
    assert to_text({"t": Tree("S", ["a"])}) == "t:\nTree('S', ['a'])"
