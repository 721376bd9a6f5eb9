"""What pydantic's schemas say wrongly or at length, put right."""

import datetime as dt
import enum
import sys
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hints import Access, Shade, Sparse, error_for, schema_of
from pydantic import BaseModel, Field, TypeAdapter

from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.pydantic_json_schemas import SchemaGenerator


class Mask(enum.IntFlag):
    READ = 1
    OTHERS = -8


def generate(hint, mode="validation"):
    return SchemaGenerator(by_alias=True).generate(TypeAdapter(hint).core_schema, mode=mode)


@pytest.mark.parametrize(
    ("hint", "published"),
    [
        (Shade, {"enum": ["red", "blue"], "title": "Shade", "type": "string"}),
        (Access, {"type": "integer", "minimum": 0, "maximum": 3, "title": "Access",
                  "description": "What may be done. Any sum of READ = 1, WRITE = 2."}),
        (Sparse, {"type": "integer", "enum": [0, 1, 4, 5], "title": "Sparse",
                  "description": "Any sum of LOW = 1, HIGH = 4."}),
        pytest.param(
            Mask, {"type": "integer", "title": "Mask",
                   "description": "Any sum of READ = 1, OTHERS = -8."},
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 15), reason="since 3.15, no member of a flag is negative"
            ),
        ),
    ],
)  # fmt: skip
def test_an_enumeration_tells_each_value_once_and_flags_tell_their_sums(hint, published):
    assert generate(hint) == published


def test_a_long_description_is_cut_and_says_so():
    text = generate(Annotated[int, Field(description="word " * 1_000)])["description"]
    assert len(text) <= 2_000
    assert text.endswith("word ... [cut: 5,000 characters in all]")


def test_bytes_are_base64_on_their_way_in():
    assert generate(bytes) == {"type": "string", "contentEncoding": "base64"}
    assert "contentEncoding" not in generate(bytes, "serialization")


@pytest.mark.parametrize("hint", [pd.Timestamp, pd.Timedelta, dt.datetime, Any])
def test_a_default_that_is_missing_is_not_told_and_reaches_the_function(hint):
    schema = schema_of(hint, pd.NaT)
    assert "default" not in schema.input_schema["properties"]["value"]
    assert schema.validate({}) == {"value": pd.NaT}


# -- Bounds of library types are told in the words of JSON Schema, and hold. -----------------------


TWO = Field(min_length=2, max_length=3)
ROW = {"type": "object", "additionalProperties": True}
ROWS = {"type": "array", "items": ROW, "minItems": 2, "maxItems": 3}
NESTED = {"type": "array", "items": {}}
COLUMNS = {"type": "object", "additionalProperties": {"type": "array", "items": {}}}


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
         {"type": "array", "items": {"anyOf": [{"type": "integer"}, NESTED]},
          "minItems": 2, "maxItems": 3}),
        (Annotated[pd.Series, Field(min_length=2)],
         {"anyOf": [NESTED | {"minItems": 2}, {"type": "object", "minProperties": 2}]}),
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
            "items | object of array.",
        ),
        (Annotated[pd.DataFrame, TWO], {"a": [1]}, "at least 2 items after validation, not 1."),
    ],
)
def test_a_value_out_of_bounds_is_refused_in_our_words(hint, sent, said):
    assert error_for(hint, sent).endswith(said)


class Zone(enum.Enum):
    """How far it goes."""

    NEAR = "near"
    FAR = "far"


class Cat(BaseModel):
    kind: Literal["cat"]
    friend: "Pet | None" = None


class Dog(BaseModel):
    kind: Literal["dog"]
    zone: Zone


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Cat.model_rebuild()


def test_a_type_that_is_used_once_is_written_where_it_is_used():
    zone = schema_of(Annotated[Zone, "Where it goes."]).input_schema
    assert zone["properties"]["value"] == {
        "type": "string",
        "enum": ["near", "far"],
        "description": "Where it goes. How far it goes.",
    }
    assert "$defs" not in zone


def test_a_type_that_is_used_twice_or_named_by_a_discriminator_is_a_definition():
    twice = schema_of(Zone | list[Zone]).input_schema
    assert list(twice["$defs"]) == ["Zone"]
    one_of = schema_of(Pet).input_schema
    assert {"Cat", "Dog"} <= one_of["$defs"].keys()
    mapping = one_of["properties"]["value"]["discriminator"]["mapping"]
    assert {address.rpartition("/")[2] for address in mapping.values()} <= one_of["$defs"].keys()
    assert one_of["$defs"]["Dog"]["properties"]["zone"]["enum"] == ["near", "far"]


def test_a_parameter_may_be_named_as_a_keyword_that_holds_values():
    def paint(default: Shade, enum: Shade):
        """Paint."""

    schema = read_function_schema(paint).input_schema
    assert schema["properties"] == {key: {"$ref": "#/$defs/Shade"} for key in ("default", "enum")}
    assert list(schema["$defs"]) == ["Shade"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (tuple[int, int], {"items": {"type": "integer"}}),
        (
            tuple[int, str, int],
            {
                "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": "integer"}],
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            },
        ),
    ],
)
def test_a_tuple_says_what_its_items_are_in_a_word_that_every_provider_takes(hint, schema):
    published = schema_of(hint).input_schema["properties"]["value"]
    size = len(hint.__args__)
    assert published == {"type": "array", "minItems": size, "maxItems": size} | schema
