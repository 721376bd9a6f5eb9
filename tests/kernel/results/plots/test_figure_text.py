"""What is said of a figure, without drawing it."""

import pytest

from mcp_notebook.kernel.results.plots.figure_text import describe_figure

numpy = pytest.importorskip("numpy")


def draw_lines(plt):
    axes = plt.subplots()[1]
    axes.plot(range(1, 13), range(12), label="EU")
    axes.plot(range(1, 13), numpy.linspace(3.2, 18.7, 12), label="US")
    axes.legend()
    axes.set(title="Revenue", xlabel="month", ylabel="EUR")


def draw_grid(plt):
    figure, axes = plt.subplots(2, 3)
    figure.suptitle("All")
    for number, part in enumerate(axes.flat):
        part.plot([10432.4997, 10432.5003], label=f"series {number}")


def draw_zoomed(plt):
    axes = plt.subplots()[1]
    axes.plot([2000, 2024], [1, 2])
    axes.set_xlim(2030, 2010)


def draw_dates(plt):
    days = numpy.arange("2024-01-01", "2024-04-01", dtype="datetime64[D]")
    plt.figure()
    plt.plot(days, range(len(days)))


def draw_hours(plt):
    plt.figure()
    plt.plot(numpy.array(["2024-01-01T06", "2024-01-02"], "datetime64[h]"), [1, 2])


def draw_image(plt):
    figure, axes = plt.subplots()
    picture = axes.imshow(numpy.linspace(0, 1, 200).reshape(10, 20))
    figure.colorbar(picture)


def draw_in_space(plt):
    plt.figure().add_subplot(projection="3d").plot([1, 2], [3, 4], [5, 6])


def draw_gaps(plt):
    axes = plt.subplots()[1]
    axes.plot([1, 2, 3], [1, numpy.nan, 3], label="seen")
    axes.plot([numpy.nan], [1], label="a line of a legend")
    axes.scatter([1, numpy.nan, 3], [1, 2, 3])


def draw_noisy_edge(plt):
    plt.bar([-1.776e-15], [2], width=99, align="edge")


def draw_long(plt):
    plt.figure()
    for number in range(9):
        plt.plot([1, 2], label=f"s{number}")
    plt.title("very " * 100)


def draw_broken(plt):
    axes = plt.subplots()[1]
    axes.plot([1, 2])
    axes.get_lines = lambda: 1 / 0


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (draw_lines, 'Figure "Revenue": x month 1 to 12, y EUR 0 to 18.7, 2 lines (EU, US)'),
        (draw_zoomed, "Figure x 2010 to 2024, y 1 to 2, 1 line"),
        (draw_dates, "Figure x 2024-01-01 to 2024-03-31, y 0 to 90, 1 line"),
        (draw_hours, "Figure x 2024-01-01 06:00 to 2024-01-02 00:00, y 1 to 2, 1 line"),
        (draw_image, "Figure image 10 x 20 of 0 to 1"),
        (draw_in_space, "Figure x 1 to 2, y 3 to 4, z 5 to 6, 1 line"),
        (
            lambda plt: plt.scatter(range(500), range(500)),
            "Figure x 0 to 499, y 0 to 499, 500 points",
        ),
        (lambda plt: plt.bar(["a", "b"], [1, 3]), "Figure x (a, b), y 0 to 3, 2 bars"),
        (
            lambda plt: plt.bar([0, 1], [1, 3], tick_label=["p", "q"]),
            "Figure x (p, q), y 0 to 3, 2 bars",
        ),
        (lambda plt: plt.pie([1, 3], labels=["x", "y"]), "Figure 2 slices (x 25%, y 75%)"),
        (lambda plt: plt.plot([numpy.nan, 1], [1, numpy.inf]), ""),
        (draw_gaps, "Figure x 1 to 3, y 1 to 3, 1 line and 2 points (seen)"),
        (draw_noisy_edge, "Figure x 0 to 99, y 0 to 2, 1 bar"),
        (lambda plt: plt.figure(), ""),
        (draw_broken, ""),
    ],
)
def test_a_figure_is_described_by_its_artists(plt, draw, says):
    plt.figure()
    draw(plt)
    assert describe_figure(plt.gcf()) == says


def test_of_many_axes_and_series_the_first_are_named(plt):
    draw_grid(plt)
    line = describe_figure(plt.gcf())
    assert line.startswith(
        'Figure "All": x 0 to 1, y 10432.4997 to 10432.5003, 1 line (series 0) | '
    )
    assert line.endswith(" | 2 more axes")
    draw_long(plt)
    line = describe_figure(plt.gcf())
    assert "(s0, s1, s2, s3, s4, s5, 3 more)" in line
    assert len(line) < 200


def test_a_plot_of_pandas_has_dates_and_names(plt):
    pandas = pytest.importorskip("pandas")
    days = pandas.Series(range(100), index=pandas.date_range("2024-01-01", periods=100))
    axes = days.plot(ax=plt.figure().add_subplot())
    assert describe_figure(axes.figure) == "Figure x 2024-01-01 to 2024-04-09, y 0 to 99, 1 line"
    table = pandas.DataFrame({"a": [1, 2], "b": [3, 4]}, index=["p", "q"])
    assert describe_figure(table.plot.bar().figure) == "Figure x (p, q), y 0 to 4, 4 bars (a, b)"
