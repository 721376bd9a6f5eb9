"""Docstrings in the three styles, and in none."""

import datetime as dt
from typing import Literal, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from optional_libraries import import_optional

from mcp_notebook.kernel.schemas.docstrings import (
    FunctionDoc,
    list_library_words,
    parse_docstring,
    read_documented_type,
)
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema

TYPES = {"x": "int", "y": "int"}
GOOGLE = """Sum it.

    Over two
    lines.

    Args:
        x (int): The first
            and more of it.
        y (int, optional): The second: with a colon.

    Returns:
        dict: The sum.

    Raises:
        ValueError: Never.

    Note:
        Stays.

    Examples:
        >>> f(1)
        2
    """
NUMPY = """Sum it.

    Over two
    lines.

    Parameters
    ----------
    x, y : int
        Both.
    z : {"a", "b"}, optional
        The third.

    Returns
    -------
    float
        The sum.

    Examples
    --------
    >>> f(1)
    2
    """
REST = """Sum it.

    Over two
    lines.

    :param int x: The first
        and more of it.
    :param y: The second: with a colon.
    :type y: int
    :returns: The sum.
    :raises ValueError: Never.
    """


def test_google_sections_are_taken_out_and_the_rest_stays():
    assert parse_docstring(GOOGLE) == FunctionDoc(
        "Sum it.\n\nOver two\nlines.\n\nNote:\n    Stays.\n\nExamples:\n    >>> f(1)\n    2",
        {"x": "The first and more of it.", "y": "The second: with a colon."},
        TYPES,
    )


def test_numpy_sections_are_taken_out_and_the_rest_stays():
    assert parse_docstring(NUMPY) == FunctionDoc(
        "Sum it.\n\nOver two\nlines.\n\nExamples\n--------\n>>> f(1)\n2",
        {"x": "Both.", "y": "Both.", "z": "The third."},
        {"x": "int", "y": "int", "z": '{"a", "b"}'},
    )


def test_rest_fields_are_taken_out():
    assert parse_docstring(REST) == FunctionDoc(
        "Sum it.\n\nOver two\nlines.",
        {"x": "The first and more of it.", "y": "The second: with a colon."},
        TYPES,
    )


@pytest.mark.parametrize("docstring", [None, "", "   \n  "])
def test_no_docstring_is_an_empty_description(docstring):
    assert parse_docstring(docstring) == FunctionDoc()


def test_a_section_that_cannot_be_parsed_does_not_prevent_the_tool():
    doc = parse_docstring("Do.\n\nArgs:\n    no colon here")
    assert doc == FunctionDoc("Do.")


# -- Which words of docstrings are types. ----------------------------------------------------------


pl = import_optional("polars")

LIKE = np.ndarray | bool | int | float


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
        ("dict of {str: int}", dict[str, int]),
        ("dict of str to float", dict[str, float]),
        ("dict[str, int]", dict[str, int]),
        ("dict of {str: list of int}", dict[str, list[int]]),
        ("tuple of (int, int)", tuple[int, int]),
        ("tuple of int", tuple[int, ...]),
        ("tuple[int, str] or None", tuple[int, str] | None),
        ("list of str, length 3", list[str]),
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
        "dict of int",
        "dict of {str: callable}",
        "tuple of (int, callable)",
    ],
)
def test_what_is_not_surely_a_type_is_none(text):
    with pytest.raises(ValueError, match=r".*"):
        read_documented_type(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("pd.DataFrame", pd.DataFrame),
        ("pandas.DataFrame or None, optional", pd.DataFrame | None),
        ("DataFrame", pd.DataFrame),
        ("Series", pd.Series),
        (":class:`pandas.Series`", pd.Series),
        ("pl.DataFrame", pl.DataFrame),
        ("pd.Timestamp", pd.Timestamp),
        ("list of DataFrame", list[pd.DataFrame]),
        ("dict of {str: DataFrame}", dict[str, pd.DataFrame]),
        ("ndarray", np.ndarray),
        ("ndarray of shape (n,)", np.ndarray),
        ("np.ndarray, shape (n_samples, n_features)", np.ndarray),
        ("(N,) ndarray", np.ndarray),
        ("1-D array", np.ndarray),
        ("array_like", LIKE),
        ("array-like of shape (n, 2), default=None", LIKE),
        ("{array-like, sparse matrix} of shape (n, m)", LIKE),
        ("int or array_like", int | LIKE),
        ("ndarray of float", npt.NDArray[np.float64]),
        ("array of ints", npt.NDArray[np.int64]),
    ],
)
def test_words_for_types_of_data_libraries_are_types(text, hint):
    assert read_documented_type(text, list_library_words({"pd": pd, "np": np})) == hint


@pytest.mark.needs("polars")
def test_a_bare_frame_is_of_the_library_that_the_functions_module_names():
    assert read_documented_type("DataFrame", list_library_words({"pl": pl})) is pl.DataFrame
    for namespace in ({}, {"pl": pl, "pd": pd}):
        with pytest.raises(ValueError, match="DataFrame"):
            read_documented_type("DataFrame", list_library_words(namespace))


def test_no_variable_of_the_notebook_is_asked_anything():
    class Strange:
        def __getattribute__(self, name):
            raise ZeroDivisionError

    assert list_library_words({"a": Strange(), "pd": pd})["dataframe"] is pd.DataFrame


@pytest.mark.smoke
def test_a_function_with_a_numpy_docstring_gets_arrays_and_tables():
    def total(x, table, start=0):
        """Add up.

        Parameters
        ----------
        x : array_like of shape (n,)
            Numbers.
        table : pd.DataFrame
            More.
        start : array_like, optional
            The first.
        """

    schema = read_function_schema(total)
    sent = {"x": [1, 2], "table": [{"a": 1}], "start": 5}
    values = schema.validate(sent)
    assert isinstance(values["x"], np.ndarray)
    assert values["table"].equals(pd.DataFrame({"a": [1]}))
    assert values["start"] == 5
    assert schema.validate({"x": 1, "table": []})["start"] == 0
