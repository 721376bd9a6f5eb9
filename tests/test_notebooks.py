"""The demo notebooks, run cell by cell in real kernels as a reader would."""

import re
from multiprocessing import get_all_start_methods
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from live import live_kernel

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def _read(name):
    return nbformat.read(FOLDER / name, as_version=4)


def _code(notebook):
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}


def _run(kernel, name):
    """Run all cells; return what each showed, by its id."""
    return {id_: kernel.ok(source) for id_, source in _code(_read(name)).items()}


@pytest.fixture(scope="module")
def weather(module_home):
    """What each cell of the weather notebook showed, by the cell's id, and its kernel."""
    with live_kernel(module_home) as kernel:
        yield kernel, _run(kernel, "weather.ipynb")


@pytest.fixture(scope="module")
def declaring():
    """What each cell of the notebook on declaring tools showed, by the cell's id."""
    with TemporaryDirectory(prefix="mcpnb-") as folder, live_kernel(Path(folder)) as kernel:
        yield _run(kernel, "declaring_tools.ipynb")


@pytest.fixture(scope="module")
def long_running():
    """What each cell of the notebook of long calls showed, by the cell's id."""
    # A folder of its own: the notebook writes a module beside itself.
    with TemporaryDirectory(prefix="mcpnb-") as folder, live_kernel(Path(folder)) as kernel:
        yield _run(kernel, "long_running.ipynb")


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


@pytest.mark.parametrize("cell", ["functions", "cell", "existing", "output", "model", "hand"])
def test_each_card_of_the_notebook_on_declaring_is_without_warnings(declaring, cell):
    (card,) = declaring[cell].displays
    assert "MCP tool" in card["text/html"]
    assert "Warning" not in card["text/plain"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("call-functions", "11 August 2014, 35.6 °C"),
        ("call-cell", "1233 mm in 2014"),
        ("call-existing", "15.6"),
        ("call-decorator", "89"),
        ("call-class", '1\n["July 2014 was dry."]'),
        ("call-data", '"max": 30.6'),
        ("call-output", '"wettest_day": "2012-11-19"'),
        ("call-model", "2 rows x 6 columns"),
        ("call-hand", "2012 had more rain than 2015."),
    ],
)
def test_each_tool_of_the_notebook_on_declaring_answers(declaring, cell, shown):
    assert shown in declaring[cell].stdout


def test_the_notebook_on_declaring_lists_all_its_tools(declaring):
    (listed,) = declaring["list"].displays
    assert re.findall(r"^(\w+)\(", listed["text/plain"], re.MULTILINE) == [
        *("rainy_days", "warmest_day", "plot_rain", "percentile", "median", "sunny_days"),
        *("diary_add", "diary_read", "describe_rain", "describe_fog", "extremes", "find_days"),
        "compare",
    ]


@pytest.mark.parametrize(
    "cell", ["mean-rain", "rain-by-month", "wettest-week", "results-so-far", "odd-days"]
)
def test_each_card_of_the_notebook_of_long_calls_is_without_warnings(long_running, cell):
    (card,) = long_running[cell].displays
    assert "MCP tool" in card["text/html"]
    assert "Warning" not in card["text/plain"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("call-mean-rain", '"mean_mm": 3.12'),
        ("call-rain-by-month", "48 rows"),
        ("call-wettest-week", "wettest week of 1,000 years"),
        ("too-slow", "it ran longer than 1 s"),
        ("call-results-so-far", "48 rows"),
        ("call-longest-dry-spell", "days without rain in 1,000 years"),
        ("call-odd-days", "info: looking at 1461 days\nsnow on 2012-03-12, at 8.3 °C"),
        ("status", "6 tools: mean_rain, rain_by_month, wettest_week, results_so_far, longest_dry"),
    ],
)
def test_the_notebook_of_long_calls_shows_what_its_text_says(long_running, cell, shown):
    assert shown in long_running[cell].stdout


@pytest.mark.parametrize("method", [m for m in get_all_start_methods() if m != "spawn"])
def test_its_function_for_processes_works_however_processes_are_started(home, method):
    code = _code(_read("long_running.ipynb"))
    with live_kernel(home) as kernel:
        kernel.ok(code["load"])
        kernel.ok(code["data"])
        kernel.ok(code["dry-spells"])
        kernel.ok(code["pool"].replace("spawn", method))
        assert "44 days" in kernel.ok(code["call-longest-dry-spell"]).stdout
