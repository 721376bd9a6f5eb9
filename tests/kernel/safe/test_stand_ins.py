"""What stands in for objects: the fields of records, the texts of classes that wrote one."""

import sys
from collections import namedtuple
from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import attrs
import pytest

from mcp_notebook.kernel.safe.stand_ins import (
    find_reader,
    format_object,
    is_record,
    list_fields,
    prints_itself,
)
from mcp_notebook.kernel.safe.to_json import to_json_value, to_structured

np = pytest.importorskip("numpy")


@dataclass
class Open:
    """Public fields: data, whatever its text is."""

    side: int = 3

    def __repr__(self):
        return "an open one"


@dataclass(repr=False)
class Closed:
    """Private fields, and a text of its own."""

    _handle: object = field(default_factory=object)
    side: int = 3

    def __repr__(self):
        return f"<Closed side={self.side}>"


@dataclass
class OnlyStr:
    _side: int = 3

    def __str__(self):
        return f"a square of {self._side}"


@dataclass
class Generated:
    _side: int = 3


@attrs.define
class Fields:
    side: int = 3
    _unit: str = "m"


@attrs.define(repr=False)
class ClosedFields:
    _side: int = 3

    def __repr__(self):
        return f"ClosedFields of {self._side}"


class Outcome(namedtuple("Outcome", "statistic pvalue")):  # noqa: PYI024, SLOT002 - as scipy's
    def __new__(cls, statistic, pvalue, df):
        made = super().__new__(cls, statistic, pvalue)
        made.df, made._cached = df, object()
        return made


class Slotted(NamedTuple):
    x: int
    y: int = 2


TEXTS = [
    (Closed(), "<Closed side=3>"),
    (OnlyStr(), "a square of 3"),
    (ClosedFields(), "ClosedFields of 3"),
]
DATA = [
    (Open(), {"side": 3}),
    (Generated(), {"_side": 3}),
    (Fields(), {"side": 3, "_unit": "m"}),
    (Outcome(1.5, 0.2, 4), {"statistic": 1.5, "pvalue": 0.2, "df": 4}),
    (Slotted(1), {"x": 1, "y": 2}),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=lambda value: type(value).__name__)
def test_a_text_that_a_class_wrote_wins_over_its_private_fields(value, text):
    assert not is_record(value)
    assert list_fields(value) is None
    assert to_json_value({"a": [value]}, 100) == {"a": [text]}
    assert to_structured([value], 100) == [text]


@pytest.mark.parametrize(("value", "data"), DATA, ids=lambda value: type(value).__name__)
def test_a_record_is_its_fields(value, data):
    assert is_record(value)
    assert to_json_value([value], 100) == [data]
    assert to_structured(value, 100) == data


def test_a_class_is_not_a_record():
    for kind in (Open, Fields, Slotted):
        assert not is_record(kind)


def test_no_metaclass_is_asked():
    class Answers(type):
        def __getattr__(cls, name):
            return ["side"]

    class Asked(metaclass=Answers):
        def __repr__(self):
            return "asked"

    assert not is_record(Asked())
    assert find_reader(Asked()) is None
    assert to_json_value([Asked()], 100) == ["asked"]


class Address:
    """Both were written, and one of them says where in memory the object is."""

    def __repr__(self):
        return f"<Address object (2 rows) at {id(self):#x}>"

    def __str__(self):
        return "GATTACA\nG-TTACA"


class Plain(Address):
    def __repr__(self):
        return "Plain(2)"


def test_a_str_says_more_than_an_address():
    assert to_json_value([Address(), Plain()], 100) == ["GATTACA\nG-TTACA", "Plain(2)"]


class Quantity(np.ndarray):
    """As astropy's: numbers with a unit."""

    def __repr__(self):
        return f"<Quantity {np.asarray(self)} m>"


class Renamed(np.ndarray):
    pass


def test_an_array_that_is_written_by_its_library_keeps_its_unit():
    quantity = np.array([1.5, 2]).view(Quantity)
    assert prints_itself(quantity)
    assert to_json_value({"a": quantity}, 100) == {"a": "<Quantity [1.5 2. ] m>"}
    for array in (
        np.ma.masked_array([1, 2]),
        np.array([1, 2]).view(Renamed),
        np.array([1, 2]).view(np.recarray),
    ):
        assert not prints_itself(array)
        assert to_json_value([array], 100) == [[1, 2]]


def test_fields_of_structured_scalars_keep_their_names():
    records = np.array([(1, 2.5), (3, 0.5)], [("n", "i4"), ("mm", "f8")])
    first = {"n": 1, "mm": 2.5}
    assert to_json_value(records[0], 100) == first
    assert to_json_value([records[0]], 100) == [first]
    assert to_json_value({"a": records}, 100)["a"][0] == first
    assert to_json_value({"a": records.reshape(1, 2)}, 100)["a"][0][0] == first
    assert to_json_value([records[0].reshape(()), np.array(records[0])], 100) == [first, first]
    assert to_structured(records[0], 100) == first


@pytest.fixture
def library(monkeypatch):
    """A library that has one of the classes of the table."""
    module = ModuleType("shapely.geometry.base")
    members = {"__module__": module.__name__, "__str__": lambda _: "POINT (1 2)"}
    module.BaseGeometry = type("BaseGeometry", (), members)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.BaseGeometry


def test_an_object_of_the_table_is_what_it_means_wherever_it_stands(library):
    class Mine(library):
        pass

    for value in (library(), Mine()):
        assert to_json_value({"a": [value]}, 100) == {"a": ["POINT (1 2)"]}
        assert to_structured([value], 100) == ["POINT (1 2)"]
        assert format_object(value) == "POINT (1 2)"


def test_a_library_that_is_only_half_loaded_is_not_asked(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "shapely.geometry.base", ModuleType("base"))
    assert find_reader(library()) is None
