"""What pydantic's schemas say wrongly or at length, put right."""

from typing import Annotated

import pytest
from hints import Access, Shade, Sparse
from pydantic import Field, TypeAdapter

from mcp_notebook.kernel.schemas.schema_generator import SchemaGenerator


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
