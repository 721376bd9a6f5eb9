"""The code that README and site show: run in a kernel, taken by the command, or listed with why."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import nbformat
import pytest
import typer
from documents import DOCUMENTS, PAGES, README, ROOT
from live import kernel_env, live_kernel

from mcp_notebook.bridge.access.oauth.configuration import read_configuration
from mcp_notebook.cli import main
from mcp_notebook.settings.limits import Limits
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LANGUAGES = {"python", "bash", "json", "text", "toml", "yaml"}
DIRECTIVES = ("{toctree}", "{eval-rst}", "{image} ", "{include} ", "{literalinclude} ")
"""What the site's generator reads, and checks."""
NOT_RUN = {
    r"python3 -m venv .*": "makes an environment, as .ci/run does",
    r"pip install .*": "reads the network; .ci/run runs the README's two lines",
    r"uvx .*": "reads the network; .ci/one-line runs it with a wheel",
    r"npx .*": "reads the network; tests/conformance runs the Inspector",
    r"claude mcp add(-json)? .*": "needs Claude Code; its arguments are checked here",
    r"mcp-notebook bundle .*": "reads the network; .ci/one-line runs it",
    r"mcp-notebook demo": "needs JupyterLab; tests/browser/test_demo.py has it",
    r"mcp-notebook doctor.*": "needs a client; tests/doctor/test_examination.py has one",
    r"mcp-notebook (un)?install (?!.*--print).*": "changes a file; tests/cli/test_install.py does",
    r"mcp-notebook token (remove|rotate) .*": "needs a token; tests/cli/test_token.py runs both",
    r"mcp-notebook stop .+": "needs a call that runs; tests/cli/test_stop_call.py has one",
    r"python tests/(?:benchmarks|evals)/.*": "takes minutes, and reads the network at first",
    r"python docs/make_performance.py": "tests/docs/test_performance.py compares what it makes",
    r"mcp-notebook connect .*": "needs a server; tests/bridge/connect has its own",
    r"export MCP_NOTEBOOK_ALLOWED_.*": "needs a proxy; tests/bridge/access/test_gate.py is one",
    r"export MCP_NOTEBOOK_LIMITS=.*": "tests/settings has it",
    r"mcp-notebook (serve|stdio)( .*)?": "runs until it is stopped; tests/e2e runs both",
}
"""Lines for a shell that are checked only as far as our command's own arguments go, with why."""
OF_CONTRIBUTORS = "CONTRIBUTING.md"
"""What stands there is run by .ci/run."""


def _with_python():
    return [page for page in PAGES if page.code("python")]


def _shell_lines():
    return sorted(
        {line for doc in DOCUMENTS if doc.name != OF_CONTRIBUTORS for line in doc.shell_lines}
    )


def _to_run():
    """Return the lines for a shell that are safe to run."""
    return [
        line for line in _shell_lines() if not any(re.fullmatch(known, line) for known in NOT_RUN)
    ]


def test_every_block_has_a_language_that_these_tests_check():
    languages = {language for document in DOCUMENTS for language, _ in document.blocks}
    assert {language for language in languages if not language.startswith(DIRECTIVES)} == LANGUAGES


# -- python ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_page(module_home):
    """Return the kernel in which a page was run: what the README shows, then the page's blocks.

    It is one for all pages, as their libraries take most of the time, and is emptied before each.
    """
    has_run = []
    with live_kernel(module_home) as kernel:

        def run(name):
            if has_run != [name]:
                for before in has_run:
                    kernel.ok("from mcp_notebook import registry")
                    kernel.ok(f"registry.remove(*{TOOLS[before].split(', ')!r})\nplt.close('all')")
                    kernel.ok("%unload_ext mcp_notebook\n%reset_selective -f .")
                has_run[:] = [name]
                (page,) = (page for page in PAGES if page.name == f"docs/{name}")
                for code in [*README.code("python"), *page.code("python")]:
                    kernel.ok(code)
            return kernel

        yield run


TOOLS = {
    "getting-started.md": "plot_rain",
    "guides/ask-the-user.md": "plot_rain, drop_year, forget_year",
    "guides/checking-tools.md": "plot_rain, uptime",
    "guides/declaring-tools.md": (
        "plot_rain, warm_days, log_in, count_rows, count_rows_online, compare_rain, rain_in, "
        "diary_add, lookup"
    ),
    "guides/live-views.md": "plot_rain, weather_days, yearly_rain",
    "guides/long-calls.md": (
        "plot_rain, mean_rain, wettest_weeks, train, wettest_days, median_high"
    ),
    "guides/prompts-and-resources.md": (
        "plot_rain, rainy_year, odd_days, explain_column, one_day, data_orders, frame, "
        "weekly-report/SKILL.md, compare-regions/SKILL.md"
    ),
    "guides/proposals.md": "plot_rain",
    "guides/results.md": "plot_rain, report, extremes, wettest_day, summer",
    "guides/watching-calls.md": "plot_rain",
    "questions.md": "plot_rain",
    "your-own-data.md": (
        "plot_rain, describe_orders, revenue, plot_revenue, orders_of, predict_quantity"
    ),
}
"""What each page with Python blocks declares, after the README's cells."""


def test_every_page_with_python_is_run():
    assert {f"docs/{name}" for name in TOOLS} == {page.name for page in _with_python()}


def test_the_first_tool_answers_with_one_picture(run_page):
    answer = run_page("getting-started.md").ok("%mcp call plot_rain year=2015")
    assert [list(data) for data in answer.displays] == [["image/png"]]


EXAMPLES = {
    "guides/ask-the-user.md": [
        ("drop_year year=2012", "only an MCP client has a user to ask"),
        ("forget_year year=2012", "2012 is removed; 1,095 days are left."),
    ],
    "guides/declaring-tools.md": [
        ('compare_rain {"days": [{"day": "2012-01-01", "mm": 5}]}', "5.0"),
        (
            'compare_rain {"days": [{"day": "2012-01-01", "mm": "abc"}]}',
            "days[0].mm: got 'abc' (string); allowed: number.",
        ),
        ("count_rows path=weather.csv", "1461"),
        ("count_rows path=../weather.csv", "the file ../weather.csv is not shared"),
        (
            "count_rows_online url=http://localhost/a.csv",
            "url: got 'http://localhost/a.csv' (string); localhost is not public, but at a private",
        ),
        ("rain_in year=2014", "1233 mm on 150 days"),
        ("diary_add note=dry", "1"),
        ("lookup weather=rain temp_max=35.6", "precipitation"),
        ("lookup", "minProperties"),
        ("warm_days kind=sun above=33", "15"),
        ("warm_days above=hot", "above"),
        ("warm_days below=3", "below"),
    ],
    "guides/live-views.md": [
        ("weather_days year=2014", "365 rows"),
        ("yearly_rain", "2012,1226.0"),
    ],
    "guides/long-calls.md": [
        ("mean_rain year=2015", "3.12 mm, from 2."),
        ("wettest_weeks years=20", "mm or more in one year out of ten"),
        ("train epochs=10", "The root mean square error is"),
        ('median_high {"data": [1, 2, 4]}', "2"),
    ],
    "guides/prompts-and-resources.md": [
        ("rainy_year year=2014", 'like `{"mm": 1100}`'),
        ("odd_days year=2014 most=2", "What is odd about them?"),
        ("explain_column column=wind", "the column `wind` of"),
        ("one_day year=2014 day=2014-01-01", "of 2014-01-01 by"),
        ("data_orders", "EU,3"),
        ("frame name=orders rows=1", '"revenue":3'),
    ],
    "guides/results.md": [
        ("wettest_day year=2012", "19 November 2012"),
        ("report year=1815", "There is no data for 1815: ask for 2012 to 2015."),
        ("extremes year=2012", '"coldest":-3.3'),
        ("summer year=2015", "Summer of 2015"),
        ("summer year=2015", "92 days"),
    ],
    "your-own-data.md": [
        ("describe_orders", "6 orders from 09 January 2026 to 28 March 2026"),
        ("revenue by=product since=2026-02-01", "tent"),
        ("revenue by=month", "allowed: 'country' | 'product'"),
        ("orders_of country=Kenya least=100", "229"),
        ("predict_quantity price=39", "4.7"),
        ("predict_quantity price=1000", "price"),
    ],
}
"""Calls of each page's tools, and what the answer contains."""


IN_DEFAULT_RUN = {"getting-started.md", "guides/declaring-tools.md", "guides/results.md"}
MARKS = {page: [pytest.mark.slow] for page in TOOLS.keys() - IN_DEFAULT_RUN}
"""For the tests of a page's tools."""


@pytest.mark.parametrize(
    ("page", "line", "shown"),
    [
        pytest.param(page, line, shown, marks=MARKS.get(page, ()))
        for page, tools in TOOLS.items()  # page by page: each is run once
        for line, shown in [
            ("%mcp status", f" {tools}\n"),
            *((f"%mcp call {call}", answer) for call, answer in EXAMPLES.get(page, [])),
        ]
    ],
)
def test_a_page_offers_its_tools_and_they_answer_as_the_text_says(run_page, page, line, shown):
    assert shown in run_page(page).ok(line).text


def test_every_example_is_of_a_page():
    assert EXAMPLES.keys() <= TOOLS.keys()


@pytest.mark.slow
def test_the_log_of_calls_has_the_columns_that_the_page_shows(run_page):
    [data] = run_page("guides/watching-calls.md").ok("%mcp log").displays
    (page,) = (page for page in PAGES if page.name == "docs/guides/watching-calls.md")
    titles = page.code("text")[0].partition("\n")[0]
    assert data["text/plain"].partition("\n")[0].split() == titles.split()


def test_a_list_of_texts_and_figures_is_answered_in_order(run_page):
    answer = run_page("guides/results.md").ok("%mcp call report year=2014")
    assert "Rain in 2014: 1233 mm" in answer.stdout
    assert [list(data) for data in answer.displays] == [["image/png"]]


def test_with_the_configuration_for_ipython_the_magics_load_the_extension(home):
    (page,) = (page for page in PAGES if page.name == "docs/operate/troubleshooting.md")
    (configuration,) = page.code("text")
    profile = home / ".ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text(configuration, encoding="utf-8")
    with live_kernel(home) as kernel:
        assert "MCP tool f()" in kernel.ok("%%mcp_tool\ndef f(): 'F.'").text


# -- the command -----------------------------------------------------------------------------------


def _parse(arguments):
    words = [word.replace("FILE.ipynb", "notebooks/weather.ipynb") for word in arguments]
    verb = typer.main.get_command(main.app)
    name = "mcp-notebook"
    while hasattr(verb, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        verb = verb.commands[name]
        verb = verb.load() if hasattr(verb, "load") else verb
    if words and "--help" not in words and not hasattr(verb, "commands"):  # else only its name
        verb.make_context(name, words)


def test_each_command_line_is_one_that_the_command_takes(monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = sorted({words for doc in DOCUMENTS for words in doc.commands()})
    assert len(lines) > 50
    refused = {}
    for line in lines:
        try:
            _parse(line)
        except Exception as error:  # noqa: BLE001 - each is a line that is refused
            refused[" ".join(line)] = repr(error)
    assert refused == {}


def test_each_client_configuration_starts_our_command():
    servers = [server for document in DOCUMENTS for server in document.servers()]
    commands = [server for server in servers if "url" not in server]
    assert {server["command"] for server in commands} == set(PROJECT["scripts"])


def test_each_client_configuration_over_http_has_our_default_address_and_sends_the_token():
    servers = [server for document in DOCUMENTS for server in document.servers()]
    over_http = [server for server in servers if "url" in server]
    here = f"http://{Settings().host}:{DEFAULT_PORT}/mcp"
    assert {server["url"] for server in over_http} == {
        here,
        "https://hub.example.com/user/ada/mcp-notebook",
    }
    for server in over_http:
        assert server["headers"] == {"Authorization": "Bearer TOKEN"}


def test_every_line_for_a_shell_is_run_or_has_a_reason_not_to_be():
    for line in _to_run():
        assert re.match(
            r"mcp-notebook (list|call|check|stop|token|audit|install \S+ --print)\b"
            r"|jupyter trust\b",
            line,
        ), line
    for known in NOT_RUN:
        assert any(re.fullmatch(known, line) for line in _shell_lines()), known


@pytest.mark.slow
@pytest.mark.parametrize("line", _to_run())
def test_a_command_line_that_is_safe_to_run_works(line, home):
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    words = shlex.split(line)
    words[0] = Path(sys.executable).with_name(words[0])
    done = subprocess.run(
        words, cwd=home, env=kernel_env(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if "--save" in words:
        suffix = ".token" if "token" in words else ".png"
        assert [path.suffix for path in home.glob("*.*") if path.is_file()] == [suffix]


# -- what only reads says so -----------------------------------------------------------------------

CHANGING = {"add", "drop_year", "forget_year", "train"}
"""Example tools that change something; all others say that they only read."""


def _declarations():
    """Return each declaration of a tool in the documents and demo notebooks, with its source."""
    sources = [code for document in DOCUMENTS for code in document.code("python")]
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        sources += [cell.source for cell in cells if cell.cell_type == "code"]
    for source in sources:
        yield from re.findall(r"^%%?mcp_tool.*", source, re.MULTILINE)
        yield from re.findall(
            r"^ *@?(?:\w+ = )?mcp_tool\b.*?^ *(?:async )?def \w+|"
            r"^(?:\w+ = )?mcp_tool\(.*",
            source,
            re.MULTILINE | re.DOTALL,
        )
        yield from re.findall(r"^ +Tool\(.*?^ +\)$|^ +Tool\($.*", source, re.MULTILINE | re.DOTALL)


def test_every_example_that_only_reads_says_so():
    declarations = list(_declarations())
    assert len(declarations) > 30
    for declaration in declarations:
        reads = re.search(r"--read-only\b|\bread_only=True\b", declaration)
        assert reads or declaration.split()[-1] in CHANGING, declaration


# -- toml ------------------------------------------------------------------------------------------


def _toml_blocks():
    return [text for page in PAGES for text in page.code("toml")]


def _has_limits(block):
    return any(f"\n{limit.name} = " in block for limit in fields(Limits))


@pytest.mark.parametrize("block", [*filter(_has_limits, _toml_blocks())])
def test_a_toml_block_of_limits_is_a_file_of_them(block, tmp_path):
    path = tmp_path / "limits.toml"
    path.write_text(block, encoding="utf-8")
    assert Settings.from_environment({"MCP_NOTEBOOK_LIMITS": str(path)}) != Settings(
        limits=str(path)
    )


@pytest.mark.parametrize("block", [*itertools.filterfalse(_has_limits, _toml_blocks())])
def test_any_other_toml_block_is_a_file_that_turns_oauth_on(block, tmp_path):
    path = tmp_path / "oauth.toml"
    path.write_text(block, encoding="utf-8")
    assert read_configuration(path).scopes
