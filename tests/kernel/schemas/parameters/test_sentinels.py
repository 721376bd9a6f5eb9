"""Defaults that say "nothing was given" are for Python: clients leave the argument out."""

import enum
from typing import Annotated, Literal

import pandas as pd
import pytest
from pydantic import Field

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.parameters.input_schema import read_function_schema


class Missing(enum.Enum):
    TOKEN = "TOKEN"


class Unit(enum.Enum):
    METRE = "m"


def test_pandas_no_default_is_not_told_to_clients():
    schema = read_function_schema(pd.read_csv)
    separator = schema.input_schema["properties"]["sep"]
    assert separator["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert "default" not in separator
    properties = schema.input_schema["properties"].values()
    assert not [each for each in properties if each.get("default") == "NO_DEFAULT"]
    arguments = schema.validate({"filepath_or_buffer": "rain.csv"})
    assert "sep" not in arguments or arguments["sep"] is pd.api.extensions.no_default


@pytest.mark.parametrize(
    "hint",
    [
        int | Missing,
        int | Literal[Missing.TOKEN],
        Annotated[int | Missing, Field(description="How many.")],
        Annotated[int, Field(description="How many.")] | Missing,
    ],
)
def test_a_sentinel_is_left_out_of_the_type_and_of_the_default(hint):
    def f(count: hint = Missing.TOKEN):
        """Do."""

    schema = read_function_schema(f)
    published = schema.input_schema["properties"]["count"]
    assert {key: published[key] for key in published if key != "description"} == {"type": "integer"}
    assert "required" not in schema.input_schema
    assert schema.validate({}) == {}
    assert schema.validate({"count": 3}) == {"count": 3}
    with pytest.raises(InvalidArguments, match="allowed: integer"):
        schema.validate({"count": "TOKEN"})


def test_a_sentinel_within_a_literal_is_left_out():
    def f(how: Literal["fast", "exact", Missing.TOKEN] = Missing.TOKEN):
        """Do."""

    assert read_function_schema(f).input_schema["properties"]["how"] == {
        "type": "string",
        "enum": ["fast", "exact"],
    }


def test_a_sentinel_of_a_parameter_without_a_type_hint_is_left_out():
    def f(count=Missing.TOKEN):
        """Do."""

    assert read_function_schema(f).input_schema["properties"]["count"] == {}


def test_an_enumeration_of_one_member_that_is_all_that_is_allowed_is_published():
    def f(unit: Unit = Unit.METRE, other: int | Unit = 3):
        """Do."""

    schema = read_function_schema(f)
    properties = schema.input_schema["properties"]
    assert properties["unit"]["default"] == "m"
    assert {"$ref": "#/$defs/Unit"} in properties["other"]["anyOf"]
    assert schema.validate({"unit": "m"})["unit"] is Unit.METRE
