"""Core schemas are found and changed at any depth, and their values left alone."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic_core import SchemaValidator

from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone, rewrite, walk_schemas


def test_every_schema_is_found_and_no_value():
    core = TypeAdapter(dict[str, list[Annotated[int, Field(ge=1)] | Literal["int"]]]).core_schema
    kinds = [part["type"] for part in walk_schemas(core)]
    assert sorted(kinds) == ["dict", "int", "list", "literal", "str", "union"]


def test_a_part_is_changed_at_any_depth_in_a_copy():
    core = TypeAdapter(list[dict[str, int]]).core_schema
    strict = rewrite(
        core, lambda old, new: {**new, "strict": True} if old["type"] == "int" else new
    )
    assert build_alone(SchemaValidator, core).validate_python([{"a": "1"}]) == [{"a": 1}]
    assert not build_alone(SchemaValidator, strict).isinstance_python([{"a": "1"}])
