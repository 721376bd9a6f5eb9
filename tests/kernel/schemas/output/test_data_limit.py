"""Structured content keeps to its limit: refused before, while or after it is converted."""

from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import BaseModel

from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.schemas.output.data_limit import (
    convert_plain_data,
    count_chars,
    has_at_most,
)


class Model(BaseModel):
    items: list[int]


@dataclass
class Point:
    items: list[int]


def test_plain_data_is_converted_whole():
    assert convert_plain_data({"a": (1, 2)}, 100) == {"a": [1, 2]}


def test_data_with_too_many_parts_is_refused_with_what_to_do():
    with pytest.raises(InvalidResult, match=r"more than 10 parts.*Return less"):
        convert_plain_data(list(range(11)), 10)


def test_data_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(InvalidResult, match="contains itself"):
        convert_plain_data(endless, 10)


def test_the_size_is_that_of_the_json():
    assert count_chars(["äöü"]) == 7
    with pytest.raises(InvalidResult, match="cannot be sent as data"):
        count_chars({1, 2})


@pytest.mark.parametrize(
    "value",
    [
        *([0] * 11, "x" * 11, {"a": "x" * 11}, [[0] * 6, [0] * 6]),
        *(np.zeros((4, 4)), Model(items=[0] * 11), Point([0] * 11), b"x" * 11),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_with_too_many_parts_is_known_before_it_is_converted(value):
    assert not has_at_most(value, 10)


def test_the_parts_of_a_value_that_contains_itself_come_to_an_end():
    endless = [1]
    endless.append(endless)
    assert has_at_most(endless, 10)
