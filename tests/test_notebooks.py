"""The demo notebooks, run cell by cell in real kernels as a reader would."""

from pathlib import Path

import nbformat
import pytest
from live import live_kernel

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def _read(name):
    return nbformat.read(FOLDER / name, as_version=4)


def _code(notebook):
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}


@pytest.fixture(scope="module")
def weather(module_home):
    """What each cell of the weather notebook showed, by the cell's id, and its kernel."""
    with live_kernel(module_home) as kernel:
        yield (
            kernel,
            {id_: kernel.ok(source) for id_, source in _code(_read("weather.ipynb")).items()},
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_valid_and_free_of_old_outputs(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_the_quickstart_has_five_cells_and_its_tool_answers(home):
    notebook = _read("quickstart.ipynb")
    assert len(notebook.cells) == 5
    with live_kernel(home) as kernel:
        for source in _code(notebook).values():
            kernel.ok(source)
        answer = kernel.ok("%mcp call top_customers region=EU n=1")
    assert "Ada" in answer.text
    assert "120" in answer.text


def test_the_weather_notebook_declares_its_tools_in_order(weather):
    _, shown = weather
    assert "4 tools: monthly_rain, plot_temperature, rainy_days, chance_of_dry_spell" in (
        shown["status"].stdout
    )


@pytest.mark.parametrize("cell", ["monthly-rain", "plot-temperature", "rainy-days", "dry-spell"])
def test_each_tool_of_the_weather_notebook_has_a_card_without_warnings(weather, cell):
    _, shown = weather
    (card,) = shown[cell].displays
    assert "MCP tool" in card["text/html"]
    assert "Warning" not in card["text/plain"]


def test_the_dataframe_tool_answers_with_a_table_of_twelve_months(weather):
    _, shown = weather
    assert "December" in shown["call"].text
    assert "rain_mm" in shown["call"].text


def test_an_argument_out_of_bounds_is_refused_with_what_is_allowed(weather):
    _, shown = weather
    assert "year" in shown["refused"].stdout
    assert "1815" in shown["refused"].stdout
    assert "2012" in shown["refused"].stdout


def test_the_plot_tool_answers_with_one_picture(weather):
    _, shown = weather
    assert [list(data) for data in shown["call-plot"].displays] == [["image/png"]]


def test_the_coroutine_tool_answers(weather):
    _, shown = weather
    assert "14 or more dry days in a row" in shown["call-dry-spell"].stdout


def test_a_tool_sees_a_variable_that_the_reader_changed(weather):
    kernel, _ = weather
    kernel.ok("threshold_mm = 50")
    assert '"days": 3' in kernel.ok("%mcp call rainy_days").stdout
