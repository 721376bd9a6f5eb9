"""Values that parameters take by rules of ours; `test_parameters` has them for each type."""

import enum

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.core_schemas import build_alone


class Access(enum.IntFlag):
    READ = 1
    WRITE = 4


class Upload(BaseModel):
    data: bytes
    access: Access = Access.READ
    size: int = 0


def taken(hint, value):
    core = tighten(TypeAdapter(hint).core_schema)
    return build_alone(SchemaValidator, core).validate_python(value)


def test_the_rules_hold_within_models():
    assert taken(Upload, {"data": "YWJj", "access": 5}) == Upload(data=b"abc", access=Access(5))
    for wrong in ({"data": "?"}, {"data": "", "access": 2}, {"data": "", "size": True}):
        with pytest.raises(ValidationError):
            taken(Upload, wrong)
        with pytest.raises(ValidationError):
            taken(list[Upload], [wrong])
