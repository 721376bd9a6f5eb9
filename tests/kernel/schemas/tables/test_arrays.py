"""Types of the data libraries wherever they stand in a type hint."""

import dataclasses
import warnings
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hints import accept, error_for, schema_of
from pydantic import BaseModel, ConfigDict, Field

from mcp_notebook import Columns
from mcp_notebook.errors import DefinitionError


@dataclasses.dataclass
class Station:
    rain: Annotated[pd.DataFrame, Columns(mm=float)]
    opened: pd.Timestamp
    shape: np.ndarray


class Report(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    rain: pd.DataFrame
    count: np.int64 = np.int64(0)


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (np.int64, 5, np.int64(5)),
        (np.float32, 1.5, np.float32(1.5)),
        (np.integer, 5, np.int64(5)),
        (np.signedinteger, -5, np.int64(-5)),
        (np.unsignedinteger, 2**63, np.uint64(2**63)),
        (np.floating, 1.5, np.float64(1.5)),
        (np.float32, "inf", np.float32("inf")),
        (np.bool_, True, np.bool_(True)),
        (np.str_, "a", np.str_("a")),
        (np.datetime64, "2024-01-02", np.datetime64("2024-01-02T00:00:00", "us")),
        (pd.Timestamp, "2024-01-02", pd.Timestamp("2024-01-02")),
        (pd.Timedelta, "P1D", pd.Timedelta(days=1)),
        (Annotated[np.int64, Field(description="How many.")] | None, 5, np.int64(5)),
        (dict[str, np.float64], {"a": 1}, {"a": np.float64(1)}),
    ],
)
def test_a_scalar_is_made_of_what_json_has_for_it(hint, sent, value):
    assert accept(hint, sent) == value
    assert type(accept(hint, sent)) is type(value)


@pytest.mark.parametrize(
    ("hint", "sent", "said"),
    [
        (np.int64, True, "allowed: integer."),
        (np.int8, 300, "allowed: integer from -128 to 127."),
        (np.int64, 2**63, "got 9223372036854775808 (integer); "),
        (np.uint64, -1, "allowed: integer at least 0."),
        (np.unsignedinteger, -1, "allowed: integer at least 0."),
        (npt.NDArray[np.unsignedinteger], [-1], "allowed: integer at least 0 | array."),
        (np.bool_, 1, "allowed: true | false."),
        (pd.Timestamp, 2024, "allowed: date and time as text"),
        (pd.Timestamp, "soon", "allowed: date and time as text"),
        (npt.NDArray[np.float64], [1, "a"], "value[1]: got 'a' (string); allowed: number"),
        (npt.NDArray[np.float64], [True], "value[0]: got True (boolean); allowed: number"),
        (npt.NDArray[np.float64], [[1], [2, 3]], "inhomogeneous"),
        (np.ndarray, [1, [2]], "value[1]: got [2] (array); "),
        (npt.NDArray[np.float64], [[1], 2], "value[1]: got 2 (integer); "),
        (npt.NDArray[np.float64], 5, "value: got 5 (integer); allowed: array"),
        (npt.NDArray[np.int8], [[1, 300]], "value[0][1]: got 300 (integer); Input should be less"),
        (np.ndarray, [1, "a"], "its values are of several types."),
        (list[pd.DataFrame], [[{"a": 1}], 5], "value[1]: got 5 (integer); allowed: array of"),
        (Station, {"rain": [{"mm": "x"}], "opened": "2024-01-01", "shape": []},
         "value.rain[0].mm: got 'x' (string); allowed: number."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(hint, sent, said):
    assert said in error_for(hint, sent)


@pytest.mark.parametrize(
    ("hint", "sent", "dtype"),
    [
        (npt.NDArray[np.float64], [[1, 2.5], [3, None]], "float64"),
        (npt.NDArray[np.int8], [1, 2], "int8"),
        (npt.NDArray[np.bool_], [True], "bool"),
        (npt.NDArray[np.datetime64], ["2024-01-02"], "datetime64[us]"),
        (npt.NDArray[np.integer], [1], "int64"),
        (npt.NDArray[np.unsignedinteger], [2**63], "uint64"),
        (npt.NDArray[np.floating], [1, None], "float64"),
        (npt.NDArray[np.float32], [1, None], "float32"),
        (np.ndarray, [1, 2.5], "float64"),
        (npt.NDArray[np.float64], [], "float64"),
        (npt.NDArray[np.float64], "[1, 2]", "float64"),
    ],
)
def test_an_array_has_the_dtype_of_its_type_hint(hint, sent, dtype):
    assert accept(hint, sent).dtype == dtype


@pytest.mark.parametrize("zone", ["Z", "+02:00"])
def test_numpys_moments_have_no_zone(zone):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for hint, sent in (
            (np.datetime64, f"2024-01-01T00:00:00{zone}"),
            (npt.NDArray[np.datetime64], [f"2024-01-01T00:00:00{zone}"]),
        ):
            assert "Input should not have timezone info." in error_for(hint, sent)


def test_data_types_are_known_within_models_dataclasses_and_collections():
    station = accept(Station, {"rain": [{"mm": 1}], "opened": "2024-01-01", "shape": [1]})
    assert (station.rain.mm[0], station.opened.year, station.shape[0]) == (1.0, 2024, 1)
    report = accept(Report | None, {"rain": [{"a": 1}], "count": 2})
    assert (report.rain.a[0], report.count) == (1, np.int64(2))
    [frame] = accept(list[pd.DataFrame], [[{"a": 1}]])
    assert frame.a[0] == 1
    assert accept(list[npt.NDArray[np.int8]], [[1]])[0].dtype == "int8"


def test_a_default_of_a_number_or_a_moment_is_told():
    assert schema_of(np.int64, np.int64(5)).input_schema["properties"]["value"]["default"] == 5
    row = np.array([(1, 2.5)], "i4, f8")[0]
    assert schema_of(Any, row).input_schema["properties"]["value"]["default"] == [1, 2.5]
    moment = schema_of(pd.Timestamp, pd.Timestamp("2020-01-01"))
    assert moment.input_schema["properties"]["value"]["default"] == "2020-01-01T00:00:00"


@pytest.mark.parametrize(
    ("default", "told"),
    [
        (pd.Timestamp(1), "1970-01-01T00:00:00.000000001"),
        (pd.Timedelta(1), "PT0.000000001S"),
        (np.datetime64(1, "ns"), "1970-01-01T00:00:00.000000001"),
        (np.datetime64(1, "s"), "1970-01-01T00:00:01"),
        (np.timedelta64(1, "ns"), "PT0.000000001S"),
    ],
)
def test_a_default_is_told_with_its_nanoseconds(default, told):
    schema = schema_of(type(default), default).input_schema
    assert schema["properties"]["value"]["default"] == told


def test_arrays_of_complex_numbers_objects_and_bytes_are_made():
    numbers = accept(npt.NDArray[np.complex128], ["1+2j", 1, None])
    assert numbers.dtype == np.complex128
    assert numbers[:2].tolist() == [1 + 2j, 1 + 0j]
    assert np.isnan(numbers[2])
    assert accept(np.complex64, "1+2j") == np.complex64(1 + 2j)
    objects = accept(npt.NDArray[np.object_], [1, "a", None, {"b": 2}])
    assert objects.dtype == object
    assert objects.tolist() == [1, "a", None, {"b": 2}]
    assert accept(npt.NDArray[np.bytes_], ["YWJj"]).tolist() == [b"abc"]


@pytest.mark.parametrize(
    ("dtype", "sent"),
    [(np.complex128, True), (np.complex128, "x"), (np.number, "x"), (np.inexact, "x")],
)
def test_an_array_of_numbers_accepts_only_numbers(dtype, sent):
    assert "value[0]: got " in error_for(npt.NDArray[dtype], [sent])


def test_an_array_that_json_has_no_elements_for_cannot_be_a_parameter():
    with pytest.raises(DefinitionError, match="`value`") as refused:
        schema_of(list[npt.NDArray[np.void]])
    assert "Annotated[numpy.ndarray, void]" in str(refused.value)
