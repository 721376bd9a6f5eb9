"""Docstrings in the three styles, and in none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.schemas.docstrings import FunctionDoc, parse_docstring

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


def test_text_after_a_section_is_kept():
    doc = parse_docstring("Do.\n\nArgs:\n    x: The x.\n\nMore about it.")
    assert doc == FunctionDoc("Do.\n\nMore about it.", {"x": "The x."})


@pytest.mark.parametrize("docstring", [None, "", "   \n  "])
def test_no_docstring_is_an_empty_description(docstring):
    assert parse_docstring(docstring) == FunctionDoc()


@pytest.mark.parametrize(
    "text",
    [
        "One line.",
        ":warning: This stays.\n@mcp_tool stays too.",
        "A heading\n=========\n\n- Args: in a list",
        "Usage\n-----\n\n    f(1)",
        "Do.\n\nTypes:\n    a: stays",
    ],
)
def test_a_docstring_without_sections_is_all_description(text):
    assert parse_docstring(text) == FunctionDoc(text)


def test_a_section_that_cannot_be_parsed_does_not_prevent_the_tool():
    doc = parse_docstring("Do.\n\nArgs:\n    no colon here")
    assert doc == FunctionDoc("Do.")


pieces = st.sampled_from(
    [
        "Args:",
        "    x: y",
        "    x",
        "Parameters",
        "----",
        ":param x: y",
        ":returns",
        "",
        "Text.",
        "  :",
    ]
)


@given(st.lists(pieces | st.text(max_size=10), max_size=12).map("\n".join))
def test_no_docstring_fails(text):
    doc = parse_docstring(text)
    assert doc.description == doc.description.strip()
