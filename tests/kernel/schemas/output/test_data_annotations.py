"""Which return annotations describe data, and what they mean to pydantic."""

import enum
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NoReturn, TypeVar

import numpy as np
import pandas as pd
import pytest

from mcp_notebook import Image, Result
from mcp_notebook.kernel.schemas.output.data_annotations import describes_data, translate_annotation
from mcp_notebook.kernel.schemas.parameters.callables import NO_ANNOTATION


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Point:
    x: int


UserId = NewType("UserId", int)


@pytest.mark.parametrize(
    "annotation",
    [
        *(int, float, bool, date, Point, Colour, UserId, dict, list[int], Sequence[str]),
        *(Literal["a"], int | None, str | int, Annotated[int, "n"], Awaitable[int]),
    ],
    ids=str,
)
def test_these_annotations_describe_data(annotation):
    assert describes_data(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        *(NO_ANNOTATION, None, type(None), Any, object, NoReturn, TypeVar("T")),
        *(str, bytes, Path, list, list[Any], tuple[Any, ...], Iterator[int], str | None),
        *(Image, Result, list[Image], int | Image, Awaitable[str], Annotated[str, "s"]),
    ],
    ids=str,
)
def test_these_annotations_are_for_reading(annotation):
    assert not describes_data(annotation)


@pytest.mark.parametrize(
    ("annotation", "known"),
    [
        (pd.DataFrame, list[dict[str, Any]]),
        (pd.Series, dict[str, Any]),
        (np.ndarray, list),
        (Iterator[int], list[int]),
        (Iterator, list),
        (int, int),
        (NO_ANNOTATION, NO_ANNOTATION),
    ],
)
def test_a_type_of_a_library_is_known_by_what_it_is_as_json(annotation, known):
    assert translate_annotation(annotation) == known


def test_a_result_that_is_made_by_hand_says_nothing_of_its_data():
    with pytest.raises(TypeError, match="made by hand"):
        translate_annotation(list[Image])
