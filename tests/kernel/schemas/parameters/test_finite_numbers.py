"""Numbers that JSON does not have reach no function as another value."""

import math
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from hints import accept, error_for
from pydantic import BaseModel
from pydantic_core import from_json

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.by_hand.author_schema import read_author_schema
from mcp_notebook.kernel.schemas.parameters.input_schema import read_function_schema


class Point(BaseModel):
    x: float | None = None


@pytest.mark.parametrize(
    ("hint", "sent", "place"),
    [
        (float | None, "1e400", "value: got inf"),
        (float, "-1e400", "value: got -inf"),
        (float, "NaN", "value: got nan"),
        (Any, '{"a": [1, {"b c": 1e400}]}', "value.a[1].b c: got inf"),
        (list[float], "[1, 2.5, Infinity]", "value[2]: got inf"),
        (Point, '{"x": 1e400}', "value.x: got inf"),
        (pd.DataFrame, '[{"a": 1e400}, {"a": 1}]', "value[0].a: got inf"),
        (Decimal, "1e400", "value: got inf"),
    ],
)
def test_a_number_beyond_floats_is_refused_with_its_place(hint, sent, place):
    message = error_for(hint, from_json(sent))
    reason = "JSON has no NaN" if "nan" in place else "numbers end at 1.8e308"
    assert message == f"{place} (number); {reason}."


def test_json_sent_as_text_and_digits_sent_as_text_may_not_either():
    assert error_for(list[float], "[1, 1e400]").startswith("value[1]: got inf")
    assert error_for(float, "1e400") == "value: got '1e400' (string); numbers end at 1.8e308."
    assert accept(Decimal, "1e400") == Decimal("1e400")


def test_infinity_may_be_sent_as_a_word():
    assert accept(float, "inf") == math.inf
    assert math.isnan(accept(float, "NaN"))


def test_the_fields_of_a_model_and_a_schema_by_hand_refuse_them_too():
    def flat(point: Point):
        """Do."""

    with pytest.raises(InvalidArguments, match=r"^x: got inf"):
        read_function_schema(flat, flatten=True).validate({"x": math.inf})
    schema = read_author_schema(lambda x=0: x, {"type": "object", "properties": {"x": {}}}, "f")
    with pytest.raises(InvalidArguments, match=r"^x\[1\]: got inf"):
        schema.validate({"x": [1, math.inf]})
    assert schema.validate({"x": [1, 2]}) == {"x": [1, 2]}
