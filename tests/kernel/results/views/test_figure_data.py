"""The numbers that a matplotlib figure shows, beside its picture."""

import pytest

from mcp_notebook.kernel.results.views.figure_data import MAX_POINTS, read_figures

matplotlib = pytest.importorskip("matplotlib.figure")


@pytest.fixture
def axes():
    return matplotlib.Figure().subplots()


def test_lines_points_and_bars_are_rows_with_the_name_of_their_series(axes):
    axes.set_title("Rain")
    axes.plot([1, 2], [3, 4], label="Seattle")
    axes.scatter([5, 6], [7, 8])
    axes.bar(["a", "b"], [9, 10], label="New York")
    rows = read_figures(axes)
    assert {row["axes"] for row in rows} == {"Rain"}
    assert [(row["series"], row["x"], row["y"]) for row in rows] == [
        ("Seattle", 1, 3),
        ("Seattle", 2, 4),
        ("points 1", 5, 7),
        ("points 1", 6, 8),
        ("New York", 0, 9),
        ("New York", 1, 10),
    ]


def test_a_figure_with_too_many_points_has_only_its_picture(axes):
    axes.plot(range(MAX_POINTS + 1))
    assert read_figures(axes.figure) == []


@pytest.mark.parametrize("value", [None, 1, "a", [], {}, object()])
def test_other_values_have_no_rows(value):
    assert read_figures(value) == []


def test_axes_whose_artists_fail_have_no_rows(axes):
    (line,) = axes.plot([1, 2])
    line.get_xdata = lambda: 1 / 0
    assert read_figures(axes) == []
