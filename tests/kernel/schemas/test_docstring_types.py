"""Which words of docstrings are types."""

import datetime as dt
from typing import Literal, Optional

import pytest

from mcp_notebook.kernel.schemas.docstring_types import read_documented_type


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("int", int),
        ("int, optional", int),
        ("Integer, default: 5", int),
        ("float or None", Optional[float]),  # noqa: UP045
        ("int, str or None, default=None", int | str | None),
        ("list of str", list[str]),
        ("list[int]", list[int]),
        ("{'a', 'b'}, optional", Literal["a", "b"]),
        ("{0, 1} or None", Literal[0, 1] | None),
        ("datetime.date", dt.date),
        ("dict", dict),
    ],
)
def test_plain_words_are_types(text, hint):
    assert read_documented_type(text) == hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "callable",
        "array_like",
        "int of course",
        "{x, y}",
        "{'a', b}",
        "{",
        "a" * 1_000,
        "X | Y",
    ],
)
def test_what_is_not_surely_a_type_is_none(text):
    with pytest.raises(ValueError, match=r".*"):
        read_documented_type(text)
