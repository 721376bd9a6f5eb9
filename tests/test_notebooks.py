"""The demo notebooks, run in real kernels as a reader would; what is stored is what they show."""

import re
from importlib.metadata import version
from multiprocessing import get_all_start_methods
from pathlib import Path

import nbformat
import pytest
from live import Output, live_kernel
from run_notebooks import differences, notebook_paths, run_notebook

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = notebook_paths()
ARE_COMPARED = int(version("pandas").partition(".")[0]) >= 3
"""Whether fresh outputs are compared with those that are stored, which pandas 3 has made."""
MARKS = {
    "declaring_tools.ipynb": [pytest.mark.slow],
    "first_look.ipynb": [pytest.mark.slow],
    "good_tools.ipynb": [pytest.mark.slow],
    "live_views.ipynb": [
        pytest.mark.slow,
        pytest.mark.needs("altair", "plotly", "polars", "pyarrow", "vl_convert"),
    ],
    "long_running.ipynb": [pytest.mark.slow],
    "results_gallery.ipynb": [
        pytest.mark.slow,
        pytest.mark.needs(
            "altair", "plotly", "polars", "pyarrow", "seaborn", "sympy", "vl_convert"
        ),
    ],
    "scaling.ipynb": [pytest.mark.slow, pytest.mark.needs("distributed")],
    "weather.ipynb": [pytest.mark.slow],
}
"""For the test that runs a notebook."""


def _read(name):
    return nbformat.read(FOLDER / name, as_version=4)


def _code(notebook):
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}


def test_the_demo_notebooks_can_be_open_together_without_tools_of_equal_names():
    owners = {}
    for path in NOTEBOOKS:
        cells = _read(path.name).cells
        outputs = [_read_outputs(cell) for cell in cells if cell.cell_type == "code"]
        texts = [bundle.get("text/plain", "") for each in outputs for bundle in each.displays]
        for name in re.findall(r"^MCP tool (\w+)\(", "\n".join(texts), re.MULTILINE):
            owners.setdefault(name, set()).add(path.name)
    assert len(owners) > len(NOTEBOOKS)
    assert [name for name, notebooks in owners.items() if len(notebooks) > 1] == []


def _read_shown(name):
    """Return what each code cell of a notebook shows, by the cell's id.

    It is what is stored, where that is compared with what a fresh run shows.
    """
    cells = (_read(name) if ARE_COMPARED else run_notebook(FOLDER / name)).cells
    return {cell.id: _read_outputs(cell) for cell in cells if cell.cell_type == "code"}


def _read_outputs(cell):
    output = Output()
    for item in cell.outputs:
        if item.output_type == "stream":
            setattr(output, item.name, getattr(output, item.name) + item.text)
        else:
            output.displays.append(dict(item.data))
    return output


@pytest.fixture(scope="module")
def weather():
    """What each cell of the weather notebook shows, by the cell's id."""
    return _read_shown("weather.ipynb")


@pytest.fixture(scope="module")
def declaring():
    """What each cell of the notebook on declaring tools shows, by the cell's id."""
    return _read_shown("declaring_tools.ipynb")


@pytest.fixture(scope="module")
def good_tools():
    """What each cell of the notebook of good tools shows, by the cell's id."""
    return _read_shown("good_tools.ipynb")


@pytest.fixture(scope="module")
def long_running():
    """What each cell of the notebook of long calls shows, by the cell's id."""
    return _read_shown("long_running.ipynb")


@pytest.fixture(scope="module")
def live_views():
    """What each cell of the notebook of live views shows, by the cell's id."""
    return _read_shown("live_views.ipynb")


@pytest.fixture(scope="module")
def scaling():
    """What each cell of the notebook of long and large work shows, by the cell's id."""
    return _read_shown("scaling.ipynb")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_valid(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=MARKS.get(path.name, ()), id=path.name) for path in NOTEBOOKS]
)
@pytest.mark.skipif(not ARE_COMPARED, reason="stored with pandas 3, which names dtypes anew")
def test_its_stored_outputs_are_those_of_a_fresh_run(path):
    found = differences(_read(path.name), run_notebook(path))
    assert found == [], "run `python docs/run_notebooks.py`"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_stores_nothing_of_the_machine_that_it_ran_on(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(tmp|home|root|Users|work|var)/|ipykernel_[1-9]", text)
    assert str(Path.home()) not in text
    for cell in _read(path.name).cells:
        assert "execution" not in cell.metadata


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_no_cell_fails_or_warns(path):
    for cell in _read(path.name).cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", cell.id
            assert output.get("name") != "stderr", cell.id


@pytest.mark.smoke
def test_the_quickstart_has_five_cells_and_its_tool_answers(home):
    notebook = _read("quickstart.ipynb")
    assert len(notebook.cells) == 5
    with live_kernel(home) as kernel:
        for source in _code(notebook).values():
            kernel.ok(source)
        answer = kernel.ok("%mcp call top_customers region=EU n=1")
    assert "Ada" in answer.text
    assert "120" in answer.text


@pytest.mark.slow
def test_the_first_notebook_calls_its_tools_as_an_assistant_would(home):
    with live_kernel(home) as kernel:
        ran = {cell: kernel.ok(source) for cell, source in _code(_read("first_look.ipynb")).items()}
    assert "image/png" in ran["call-plot"].displays[0]
    assert ran["call-year"].text.startswith("2")


def test_the_weather_notebook_declares_its_tools_in_order(weather):
    assert "monthly_rain, plot_temperature, rainy_days, chance_of_dry_spell" in (
        weather["status"].text
    )


@pytest.mark.parametrize("cell", ["monthly-rain", "plot-temperature", "rainy-days", "dry-spell"])
def test_each_tool_of_the_weather_notebook_has_a_card_without_warnings(weather, cell):
    (card,) = weather[cell].displays
    assert "MCP tool" in card["text/html"]
    assert "Warning" not in card["text/plain"]


def test_the_dataframe_tool_answers_with_a_table_of_twelve_months(weather):
    assert "December" in weather["call"].text
    assert "rain_mm" in weather["call"].text


def test_an_argument_out_of_bounds_is_refused_with_what_is_allowed(weather):
    assert "year" in weather["refused"].stdout
    assert "1815" in weather["refused"].stdout
    assert "2012" in weather["refused"].stdout


def test_the_plot_tool_answers_with_one_picture(weather):
    assert [list(data) for data in weather["call-plot"].displays] == [["image/png"]]


def test_the_coroutine_tool_answers(weather):
    assert "14 or more dry days in a row" in weather["call-dry-spell"].stdout


@pytest.mark.slow
def test_a_tool_sees_a_variable_that_the_reader_changed(home):
    code = _code(_read("weather.ipynb"))
    with live_kernel(home) as kernel:
        for cell in ("load", "data", "threshold", "rainy-days"):
            kernel.ok(code[cell])
        kernel.ok("threshold_mm = 50")
        assert '"days":3' in kernel.ok("%mcp call rainy_days").stdout


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
        ("call-data", '"max":30.6'),
        ("call-output", '"wettest_day":"2012-11-19"'),
        ("call-model", "2 rows x 6 columns"),
        ("call-hand", "2012 had more rain than 2015."),
    ],
)
def test_each_tool_of_the_notebook_on_declaring_answers(declaring, cell, shown):
    assert shown in declaring[cell].text


def test_the_notebook_on_declaring_lists_all_its_tools(declaring):
    (listed,) = declaring["list"].displays
    assert re.findall(r"^(\w+)\(", listed["text/plain"], re.MULTILINE) == [
        *("sunny_days", "days_of_rain", "warmest_day", "plot_rain", "percentile", "median"),
        *("diary_add", "diary_read", "describe_rain", "describe_fog", "year_extremes", "find_days"),
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
        ("call-mean-rain", '"mean_mm":3.12'),
        ("call-rain-by-month", "48 rows"),
        ("call-wettest-week", "wettest week of 1,000 years"),
        ("too-slow", "it ran longer than 1 s"),
        ("call-results-so-far", "48 rows"),
        ("call-longest-dry-spell", "days without rain in 1,000 years"),
        ("call-odd-days", "snow on 2012-03-12, at 8.3 °C"),
        ("status", "mean_rain, rain_by_month, wettest_week, results_so_far, longest_dry"),
    ],
)
def test_the_notebook_of_long_calls_shows_what_its_text_says(long_running, cell, shown):
    assert shown in long_running[cell].text


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in get_all_start_methods() if m != "spawn"])
def test_its_function_for_processes_works_however_processes_are_started(home, method):
    code = _code(_read("long_running.ipynb"))
    # The processes leave a folder behind when the kernel is killed.
    with live_kernel(home, env={"TMPDIR": str(home)}, is_forked=False) as kernel:
        kernel.ok(code["load"])
        kernel.ok(code["data"])
        kernel.ok(code["dry-spells"])
        kernel.ok(code["pool"].replace("spawn", method))
        assert "44 days" in kernel.ok(code["call-longest-dry-spell"]).stdout


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("check", "it changes `weather` in place"),
        ("check", "has another answer with each call"),
        ("check-good", "No findings."),
        ("call", "12,284.5"),
        ("wrong", "kind: got 'snowy' (string); allowed: 'drizzle' | 'fog'"),
        ("right", "2012-03-15,23.9,11.1"),
    ],
)
def test_the_notebook_of_good_tools_shows_what_its_text_says(good_tools, cell, shown):
    assert shown in good_tools[cell].text


@pytest.mark.needs("altair", "plotly", "polars", "pyarrow", "vl_convert")
@pytest.mark.parametrize(
    ("cell", "shown"),
    [("table-call", "365 rows"), ("large-call", "999,370 rows"), ("without-call", "2012,1226.0")],
)
def test_the_notebook_of_live_views_shows_tables_of_every_size(live_views, cell, shown):
    assert shown in live_views[cell].text


@pytest.mark.parametrize("cell", ["task", "cluster", "fork"])
def test_each_card_of_the_notebook_of_large_work_is_without_warnings(scaling, cell):
    (card,) = scaling[cell].displays
    assert "MCP tool" in card["text/html"]
    assert "Warning" not in card["text/plain"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("start", "task of simulated_week"),
        ("find", "completed\n163 mm in the wettest week of 10,000 years."),
        ("cluster-call", "days with more than 10 mm"),
        ("change-call", "days with more than 25 mm"),
        ("fork-call", "as measured:              3.03 mm"),
    ],
)
def test_the_notebook_of_large_work_shows_what_its_text_says(scaling, cell, shown):
    assert shown in scaling[cell].stdout
