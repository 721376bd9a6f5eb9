"""Bounds of library types are told in the words of JSON Schema, and hold."""

from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hints import accept, error_for, schema_of
from pydantic import Field
from typing_extensions import TypedDict

TWO = Field(min_length=2, max_length=3)
ROWS = {"type": "array", "items": {"type": "object"}, "minItems": 2, "maxItems": 3}
COLUMNS = {"type": "object", "additionalProperties": {"type": "array"}}


class Named(TypedDict):
    ge: np.int64
    minLength: np.int64


def published(hint):
    return schema_of(hint).input_schema["properties"]["value"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Annotated[np.int64, Field(ge=0, le=10)], {"type": "integer", "minimum": 0, "maximum": 10}),
        (Annotated[np.int8, Field(ge=0, le=1000)],
         {"type": "integer", "minimum": 0, "maximum": 127}),
        (Annotated[np.float32, Field(gt=0, lt=10)],
         {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10}),
        (Annotated[np.float64, Field(multiple_of=0.5)], {"type": "number", "multipleOf": 0.5}),
        (Annotated[np.int64 | None, Field(ge=0)],
         {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}),
        (Annotated[pd.Timestamp, Field(ge=pd.Timestamp("2020-01-01"))],
         {"type": "string", "format": "date-time"}),
        (Annotated[npt.NDArray[np.int64], TWO],
         {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "array"}]},
          "minItems": 2, "maxItems": 3}),
        (Annotated[pd.Series, Field(min_length=2)],
         {"anyOf": [{"type": "array", "minItems": 2}, {"type": "object", "minProperties": 2}]}),
        (Annotated[pd.DataFrame, TWO], {"anyOf": [ROWS, COLUMNS]}),
        (Annotated[str, TWO], {"type": "string", "minLength": 2, "maxLength": 3}),
    ],
)  # fmt: skip
def test_a_bound_is_told_in_the_words_of_json_schema(hint, schema):
    assert published(hint) == schema


@pytest.mark.parametrize(
    ("hint", "sent", "said"),
    [
        (Annotated[np.int64, Field(ge=0, le=10)], 11, "allowed: integer from 0 to 10."),
        (Annotated[np.float32, Field(gt=0)], 0, "allowed: number more than 0."),
        (Annotated[npt.NDArray[np.int64], TWO], [1], "with 2 to 3 items."),
        (
            Annotated[pd.DataFrame, TWO],
            [{"a": 1}],
            "items (rows) | object of array (columns).",
        ),
        (Annotated[pd.DataFrame, TWO], {"a": [1]}, "at least 2 items after validation, not 1."),
    ],
)
def test_a_value_out_of_bounds_is_refused_in_our_words(hint, sent, said):
    assert error_for(hint, sent).endswith(said)


def test_fields_that_are_called_as_bounds_stay():
    properties = schema_of(Named).input_schema["$defs"]["Named"]["properties"]
    assert properties == {"ge": {"type": "integer"}, "minLength": {"type": "integer"}}
    assert accept(Named, {"ge": 1, "minLength": 2}) == {"ge": 1, "minLength": 2}
