"""An array's dtype holds within classes, too."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, NotRequired

import attrs
import numpy as np
import numpy.typing as npt
import pytest
from hints import accept, error_for, schema_of
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator
from typing_extensions import TypedDict

Small = npt.NDArray[np.int8]


@dataclasses.dataclass
class Grid:
    cells: Small


class Report(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    cells: Annotated[Small, Field(description="Counts.")]
    means: dict[str, npt.NDArray[np.float64] | None] = {}
    inner: Grid | None = None
    anything: np.ndarray | None = None

    @field_validator("means")
    @classmethod
    def keep(cls, value):
        return value


class Row(TypedDict):
    cells: Small
    more: NotRequired[list[Small]]


class Pair(NamedTuple):
    cells: Small
    other: np.ndarray | None = None


class Cells(RootModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    root: list[Small]


@attrs.define
class Tile:
    _cells: Small


@pytest.mark.parametrize("kind", [Grid, Report, Row, Pair, Tile])
def test_the_dtype_of_a_field_is_told_checked_and_made(kind):
    made = accept(kind, {"cells": [[1], [2]]})
    cells = made["cells"] if kind is Row else getattr(made, "_cells", getattr(made, "cells", None))
    assert cells.dtype == np.int8
    for wrong in ("x", 300):
        assert error_for(kind, {"cells": [wrong]}).startswith("value.cells[0]: got ")
    assert "{'maximum': 127, 'minimum': -128, 'type': 'integer'}" in str(
        schema_of(kind).input_schema
    )


def test_each_array_of_a_field_has_its_own_dtype():
    report = accept(
        Report,
        {
            "cells": [1],
            "means": {"a": [1, None], "b": None},
            "inner": {"cells": [2]},
            "anything": ["x"],
        },
    )
    assert report.means["a"].dtype == np.float64
    assert report.inner.cells.dtype == np.int8
    assert report.anything.tolist() == ["x"]
    assert error_for(Report, {"cells": [1], "means": {"a": ["x"]}}).startswith("value.means.a[0]")
    assert error_for(Report, {"cells": [1], "inner": {"cells": ["x"]}}).startswith(
        "value.inner.cells[0]"
    )


@pytest.mark.parametrize(
    ("hint", "sent", "place"),
    [
        (Sequence[Small], [["x"]], "value[0][0]"),
        (Mapping[str, Small], {"a": ["x"]}, "value.a[0]"),
        (frozenset[int] | Sequence[Small], [["x"]], "value[0][0]"),
        (list[Grid], [{"cells": ["x"]}], "value[0].cells[0]"),
        (Cells, [["x"]], "value[0][0]"),
        (Row, {"cells": [1], "more": [["x"]]}, "value.more[0][0]"),
    ],
)
def test_the_dtype_holds_within_every_container(hint, sent, place):
    assert f"{place}: got 'x' (string); allowed: integer" in error_for(hint, sent)
