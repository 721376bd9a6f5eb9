"""Schemas that are none are seen before clients see them."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import BaseModel, Field, WithJsonSchema

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.metaschema import find_schema_problem
from mcp_notebook.kernel.tools.declared_tool import make_tool

Refused = Annotated[int, WithJsonSchema({"type": "nope"})]


class Inner(BaseModel):
    value: Refused


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Refused, "`type` cannot be 'nope'"),
        (list[Refused], "`type` cannot be 'nope'"),
        (Inner, "`type` cannot be 'nope'"),
        (Annotated[int, Field(json_schema_extra={"minimum": "a"})], "`minimum` cannot be 'a'"),
        (Annotated[str, Field(json_schema_extra={"pattern": "("})], "`pattern` cannot be '('"),
        (Annotated[int, WithJsonSchema({"$ref": "#/$defs/Nope"})], "Nope"),
        (Annotated[int, WithJsonSchema({"type": ["string", "string"]})], "`type` cannot be"),
        (
            Annotated[dict, Field(json_schema_extra={"required": ["a", "a"]})],
            "`required` cannot be",
        ),
    ],
    ids=str,
)
def test_a_hint_that_adds_an_invalid_schema_is_refused_at_definition(hint, said):
    def tool(x):
        """Do."""

    tool.__annotations__ = {"x": hint}
    with pytest.raises(DefinitionError) as refused:
        make_tool(tool)
    assert "`tool`" in str(refused.value)
    assert said in str(refused.value)


def test_a_return_type_without_a_schema_is_left_out_or_refused_if_asked_for():
    def tool():
        """Do."""

    tool.__annotations__ = {"return": Inner}
    assert make_tool(tool).info.output_schema is None


keywords = st.sampled_from(
    [
        *("type", "enum", "pattern", "required", "minimum", "multipleOf", "minLength", "maxItems"),
        *("title", "format", "uniqueItems", "allOf", "properties", "items", "not", "$defs"),
        *("additionalProperties", "prefixItems", "patternProperties", "propertyNames"),
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["string", "object", "a", "", "^a+$"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keywords | st.sampled_from(["x", "^y$"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(keywords, values, max_size=4))
def test_what_the_metaschema_refuses_is_refused(schema):
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        assert find_schema_problem(schema) is not None, schema
