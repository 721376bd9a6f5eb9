"""The table of values: its rows are in an order in which each can apply, and say what they do."""

import pathlib
from datetime import date

import pytest
from contents import PNG, Point

from mcp_notebook.content import Image, Result
from mcp_notebook.kernel.results.value_renderer import match_rules
from mcp_notebook.kernel.results.values import RULES


class OnlyStr:
    def __str__(self):
        return "P at 1"


def test_a_repr_that_was_written_comes_before_the_str(to_text):
    class Both(OnlyStr):
        def __repr__(self):
            return "P(1)"

    assert to_text(Both()) == "P(1)"
    assert to_text([Both()]) == '["P(1)"]'


def test_html_of_a_class_in_a_function_comes_before_its_name(to_text):
    class Place(OnlyStr):
        def _repr_html_(self):
            return "<p>Rome</p>"

    assert to_text(Place()) == "Rome"


def test_a_str_that_fails_is_a_sentence(to_text):
    class Broken:
        def __str__(self):
            raise SystemExit("no")

    assert to_text(Broken()) == "A value of type Broken cannot be shown: SystemExit: no"
    assert "whose repr failed: SystemExit: no" in to_text([Broken()])


def first_row(value):
    """Return the first row for a value, of those that do not decide only when they render."""
    undecided = ("a value of a type that", "list, tuple, dict or record with any")
    rows = (row for row in match_rules(RULES, value) if not row.values.startswith(undecided))
    return next(rows).values


@pytest.mark.parametrize(
    ("value", "row"),
    [
        (None, "`None`"),
        (Image(PNG), "`Text`, `Image`"),
        (Result(), "`Text`, `Image`"),
        ("text", "`str`"),
        (1.5, "`str`"),
        (pathlib.Path("a"), "`pathlib.Path`"),
        (PNG, "`bytes`"),
        ([1], "list, tuple, dict, set"),
        ({"a": 1}, "list, tuple, dict, set"),
        (Point(x=1), "dataclass, pydantic model"),
        (date(2024, 1, 1), "dataclass, pydantic model"),
        (object(), "anything else"),
    ],
)
def test_the_row_of_a_value_of_python(value, row):
    assert first_row(value).startswith(row)


@pytest.mark.parametrize(
    ("module", "make", "row"),
    [
        ("pandas", lambda pandas: pandas.DataFrame(), "pandas `DataFrame`"),
        ("pandas", lambda pandas: pandas.Series([1]), "pandas `DataFrame`"),
        ("pandas", lambda pandas: pandas.Index([1]), "pandas `Index`"),
        ("polars", lambda polars: polars.LazyFrame(), "pandas `DataFrame`"),
        ("pyarrow", lambda pyarrow: pyarrow.table({}), "pandas `DataFrame`"),
        ("numpy", lambda numpy: numpy.ones(3), "numpy array"),
        ("numpy", lambda numpy: numpy.float64(3), "dataclass, pydantic model"),
        ("PIL.Image", lambda pil: pil.new("L", (1, 1)), "PIL image"),
        ("matplotlib.figure", lambda figure: figure.Figure(), "matplotlib figure"),
        ("matplotlib.figure", lambda figure: [figure.Figure().subplots()], "matplotlib figure"),
        pytest.param(
            "plotly.graph_objects",
            lambda plotly: plotly.Figure(),
            "plot of plotly",
            marks=pytest.mark.needs("plotly"),
        ),
        pytest.param(
            "altair",
            lambda altair: altair.Chart(),
            "plot of plotly",
            marks=pytest.mark.needs("altair"),
        ),
    ],
)
def test_the_row_of_a_value_of_a_library(module, make, row):
    assert first_row(make(pytest.importorskip(module))).startswith(row)


def test_the_last_row_takes_any_value_and_no_other_row_does():
    items, others = (rule.values for rule in match_rules(RULES, object()))
    assert items.startswith("list, tuple, dict or record with any of the above")
    assert others == "anything else"


def test_each_row_says_which_values_and_what_they_become():
    assert all(rule.values and rule.content for rule in RULES)
    assert len({rule.values for rule in RULES}) == len(RULES)
