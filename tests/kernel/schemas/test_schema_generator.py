"""What pydantic's schemas say wrongly or at length, put right."""

import datetime as dt
import enum
from typing import Annotated, Any

import pandas as pd
import pytest
from hints import Access, Shade, Sparse, schema_of
from pydantic import Field, TypeAdapter

from mcp_notebook.kernel.schemas.schema_generator import SchemaGenerator


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
        (Mask, {"type": "integer", "title": "Mask",
                "description": "Any sum of READ = 1, OTHERS = -8."}),
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


@pytest.mark.parametrize(
    ("hint", "default", "published"),
    [
        (bytes, b"\xff\x00?", "/wA/"),
        (dict[str, list[bytes]], {"a": [b"\xff\x00?"]}, {"a": ["/wA/"]}),
    ],
)
def test_bytes_in_a_default_are_base64_as_the_schema_means_it(hint, default, published):
    assert schema_of(hint, default).input_schema["properties"]["value"]["default"] == published


@pytest.mark.parametrize("hint", [pd.Timestamp, pd.Timedelta, dt.datetime, Any])
def test_a_default_that_is_missing_is_not_told_and_reaches_the_function(hint):
    schema = schema_of(hint, pd.NaT)
    assert "default" not in schema.input_schema["properties"]["value"]
    assert schema.validate({}) == {"value": pd.NaT}
