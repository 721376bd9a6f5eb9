"""What the values of a type hint are like, and those values without classes of Python's."""

import dataclasses
import enum
import ipaddress
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from hints import Cat, Shade
from pydantic import BaseModel, HttpUrl
from typing_extensions import TypedDict

from mcp_notebook.kernel.schemas.tables.column_shapes import NO_SHAPE, is_kept, read_shape, to_plain


@dataclasses.dataclass
class Point:
    x: float
    tags: list[str]


class Row(TypedDict):
    n: int


class Node(BaseModel):
    children: list["Node"]


Mixed = enum.Enum("Mixed", {"A": 1, "B": "x"})


@pytest.mark.parametrize(
    ("hint", "shape"),
    [
        (int, int),
        (Decimal | None, Decimal),
        (Literal["a", "b"] | None, str),
        (Literal[1, "a"], None),
        (Shade, str),
        (Mixed, None),
        (int | float, float),
        (int | str, None),
        (list[int | float] | None, [float]),
        (tuple[int, ...], [int]),
        (tuple[int, float], [float]),
        (set[Shade], [str]),
        (Point, {"x": float, "tags": [str]}),
        (Row, {"n": int}),
        (Cat, {"kind": str, "lives": int}),
        (Node, None),
        (list, None),
        (dict[str, int], None),
        (Any, None),
        (complex, NO_SHAPE),
        (list[complex] | None, NO_SHAPE),
        (tuple[int, str], NO_SHAPE),
        (complex | str, None),
    ],
)
def test_a_type_hint_tells_what_its_values_are_like(hint, shape):
    assert read_shape(hint) == shape


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Shade.RED, "red"),
        (Point(1.0, ["a"]), {"x": 1.0, "tags": ["a"]}),
        (Cat(kind="cat", lives=9), {"kind": "cat", "lives": 9}),
        ((1, {2}), [1, [2]]),
        ({Shade.BLUE: Decimal("1.5")}, {"blue": Decimal("1.5")}),
        (Path("a.csv"), "a.csv"),
        (ipaddress.ip_address("::1"), "::1"),
        (HttpUrl("https://a.example/"), "https://a.example/"),
        (None, None),
    ],
)
def test_a_plain_value_has_no_class_of_an_author(value, plain):
    assert to_plain(value) == plain


@pytest.mark.parametrize(
    ("value", "stored", "kept"),
    [
        ([1, 2.5], [1.0, 2.5], True),
        ([1, 2.5], [1, 2], False),
        ({"x": 1}, {"x": 1, "y": None}, True),
        ({"x": 1}, {"y": None}, False),
        (float("nan"), float("nan"), True),
        (True, 1, False),
        ([1], [1, None], False),
    ],
)
def test_a_value_is_kept_if_a_library_has_all_of_it(value, stored, kept):
    assert is_kept(value, stored) is kept
