"""Types that several tests declare parameters with, and what becomes of one parameter's value."""

import enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field
from schemas import check_schema

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import (
    FunctionSchema,
    read_function_schema,
)


class Access(enum.IntFlag):
    """What may be done."""

    READ = 1
    WRITE = 2


class Sparse(enum.Flag):
    LOW = 1
    HIGH = 4


class Shade(enum.Enum):
    RED = "red"
    CRIMSON = "red"  # noqa: PIE796 - a second name
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def schema_of(hint, default=...) -> FunctionSchema:
    """Return the schema of a function whose one parameter is `value: hint`."""

    def with_default(value: hint = default):
        """Do."""

    def without(value: hint):
        """Do."""

    schema = read_function_schema(without if default is ... else with_default)
    check_schema(schema.input_schema)
    return schema


def accept(hint, sent):
    """Return what the function receives for a value that a client sends."""
    return schema_of(hint).validate({"value": sent})["value"]


def error_for(hint, sent):
    """Return what a client is told of a value that the function does not receive."""
    with pytest.raises(InvalidArguments) as raised:
        accept(hint, sent)
    return str(raised.value)
