"""Values that parameters take by rules of ours; `test_parameters` has them for each type."""

import datetime as dt
import enum
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hints import Shade, accept, error_for
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone


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


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    YES = True
    PAIR = (1, 2)
    DAY = dt.date(2024, 1, 2)


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (Literal[Shade.RED], "red", Shade.RED),
        (list[Literal[Shade.RED, Shade.BLUE] | None], ["blue", None], [Shade.BLUE, None]),
        (Literal[Level.LOW], 1, Level.LOW),
        (Literal[Odd.YES, Odd.PAIR, Odd.DAY], True, Odd.YES),
        (Literal[Odd.YES, Odd.PAIR, Odd.DAY], [1, 2], Odd.PAIR),
        (Literal[Odd.YES, Odd.PAIR, Odd.DAY], "2024-01-02", Odd.DAY),
        (Literal["red", Shade.RED], "red", "red"),
    ],
)
def test_a_member_within_a_literal_is_sent_as_its_value(hint, sent, value):
    assert accept(hint, sent) is value if isinstance(value, enum.Enum) else value
    assert accept(hint, sent) == value


def test_another_value_than_the_members_within_a_literal_is_refused():
    assert error_for(Literal[Shade.RED], "blue").endswith("allowed: 'red'.")
    assert error_for(Literal[Level.LOW], True).endswith("allowed: 1.")
    assert error_for(Literal[Odd.YES, Odd.PAIR], 1).endswith("allowed: true | [1, 2].")


@pytest.mark.parametrize("hint", [Iterable[int], Generator[int, None, None]])
def test_what_is_iterated_is_checked_before_the_function_runs(hint):
    assert accept(hint, [1, "2"]) == [1, 2]
    assert accept(hint, "[1, 2]") == [1, 2]
    for wrong in ("abc", {"a": 1}, 5):
        assert error_for(hint, wrong).endswith("allowed: array of integer.")
    assert error_for(hint, [1, "x"]) == "value[1]: got 'x' (string); allowed: integer."


def test_a_second_name_of_a_member_is_not_told_of_a_key():
    assert error_for(dict[Shade, int], {"x": 1}).endswith("should be 'red' or 'blue'.")


class Kids(BaseModel):
    kids: list["Kids"] | None = None


@pytest.mark.parametrize(
    "hint",
    [
        *(int, float, bool, dt.date, list[int], dict[str, int], int | float, Upload, Kids),
        *(Level, Literal["a", 1], Annotated[int, Field(ge=1)]),
    ],
)
@pytest.mark.parametrize("nothing", ["", " ", "null", "None"])
def test_a_text_that_says_nothing_is_none_where_no_text_is_allowed(hint, nothing):
    assert accept(hint | None, nothing) is None
    assert accept(list[hint | None], [nothing]) == [None]
    assert error_for(hint, nothing).startswith("value: got ")


@pytest.mark.parametrize(
    "hint", [str, int | str, Annotated[str, Field(max_length=4)], Literal["", "null", 1], Path]
)
@pytest.mark.parametrize("text", ["", "null"])
def test_where_text_is_allowed_it_stays_text(hint, text):
    assert str(accept(hint | None, text)) == str(type(accept(hint, text))(text))


class Norm(enum.Enum):
    """An enumeration whose members clients send by name."""

    NONE = enum.auto()
    L1 = enum.auto()


def test_a_choice_named_none_is_no_none():
    assert accept(Norm | None, "NONE") is Norm.NONE
    assert accept(list[Norm | None], ["NONE", None]) == [Norm.NONE, None]
