"""The README: whatever it shows is run, whatever the code offers is in it."""

import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from live import kernel_env, live_kernel

from mcp_notebook import Context, cli, mcp_tool, meta_keys
from mcp_notebook.kernel.notebook.magics import McpMagics
from mcp_notebook.kernel.notebook.mcp_verbs import VERBS
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.settings import Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
OUTSIDE_BLOCKS = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
INLINE = re.findall(r"`([^`\n]+)`", OUTSIDE_BLOCKS)
SETUP = [
    'pip install -e ".[demo]" && mcp-notebook serve notebooks/weather.ipynb',
    'pip install -e ".[demo,test]" && pytest',
]


def _code(language):
    return [code for kind, code in BLOCKS if kind == language]


def _shell_lines():
    return [line for code in _code("bash") for line in code.splitlines()]


def _own_commands():
    """Return the arguments of each ``mcp-notebook`` that the README tells to type or configure."""
    lines = [*_shell_lines(), *(text for text in INLINE if text.startswith("mcp-notebook "))]
    for line in lines:
        words = shlex.split(line.replace("&&", "\n").rpartition("\n")[2])
        if "mcp-notebook" in words:
            yield tuple(words[words.index("mcp-notebook") + 1 :])
    for server in _servers():
        yield tuple(server["args"])


def _servers():
    for code in _code("json"):
        (servers,) = json.loads(code).values()
        yield from servers.values()


def _parse(arguments):
    given = [word.replace("FILE.ipynb", "notebooks/weather.ipynb") for word in arguments]
    command = typer.main.get_command(cli.app)
    verb = command.commands[given[0]]
    if "--help" not in given:
        verb.make_context(given[0], given[1:])


# -- the first screen and the set-up ---------------------------------------------------------------


def test_the_first_screen_shows_three_cells_and_the_result():
    screen = README.splitlines()[:45]
    assert screen.count("```python") == 3
    assert any(line.startswith("![") for line in screen)


def test_the_two_commands_that_do_all_setup_are_there_word_for_word():
    for command in SETUP:
        assert command in _shell_lines()
    assert {"demo", "test"} <= set(PROJECT["optional-dependencies"])


def test_every_block_has_a_language_that_these_tests_check():
    assert {language for language, _ in BLOCKS} == {"python", "bash", "json"}


def test_links_within_the_repository_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)
    for link in links:
        if not link.startswith("https://"):
            assert (ROOT / link).exists(), link


# -- python ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def notebook(module_home):
    """A kernel in which every Python block of the README was run, in order."""
    with live_kernel(module_home) as kernel:
        for code in _code("python"):
            kernel.ok(code)
        yield kernel


def test_the_readmes_tools_are_offered(notebook):
    status = notebook.ok("%mcp status").stdout
    assert (
        "11 tools: plot_rain, rain_in, diary_add, lookup, mean_rain, drop_year, warm_days, "
        "summer, extremes, report, wettest_day"
    ) in status


def test_the_first_tool_answers_with_one_picture(notebook):
    answer = notebook.ok("%mcp call plot_rain year=2015")
    assert [list(data) for data in answer.displays] == [["image/png"]]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("rain_in year=2014", "1233 mm on 150 days"),
        ("diary_add note=dry", "1"),
        ("lookup weather=rain temp_max=35.6", "precipitation"),
        ("lookup", "at least 1"),
        ("mean_rain year=2015", "3.12 mm, from 2."),
        ("warm_days kind=sun above=33", "15"),
        ("warm_days above=hot", "above"),
        ("warm_days below=3", "below"),
        ("extremes year=2012", '"coldest": -3.3'),
        ("drop_year year=2012", "only an MCP client has a user to ask"),
        ("summer year=2015", "Summer of 2015"),
        ("summer year=2015", "sun,71"),
        ("wettest_day year=2012", "19 November 2012"),
        ("report year=1815", "There is no data for 1815: ask for 2012 to 2015."),
    ],
)
def test_an_example_answers_as_the_text_around_it_says(notebook, call, answer):
    assert answer in notebook.ok(f"%mcp call {call}").stdout


def test_a_list_of_texts_and_figures_is_answered_in_order(notebook):
    answer = notebook.ok("%mcp call report year=2014")
    assert "Rain in 2014: 1233 mm" in answer.stdout
    assert [list(data) for data in answer.displays] == [["image/png"]]


def test_the_pictures_are_made_from_the_readmes_own_cells_and_the_table_of_states(home):
    script = [sys.executable, ROOT / "docs" / "make_pictures.py", home]
    done = subprocess.run(script, env=kernel_env(home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = (home / "plot_rain.png").read_bytes()
    committed = (ROOT / "docs" / "images" / "plot_rain.png").read_bytes()
    # Fonts and renderers differ between versions; the picture's header says kind and size.
    assert made[:16] == committed[:16]
    made, committed = (path / "call_states.svg" for path in (home, ROOT / "docs" / "images"))
    assert made.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8")


# -- the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", sorted(set(_own_commands())), ids=" ".join)
def test_each_command_line_in_the_readme_is_one_that_the_command_takes(arguments, monkeypatch):
    monkeypatch.chdir(ROOT)
    _parse(arguments)


def test_each_client_configuration_starts_our_command():
    assert {server["command"] for server in _servers()} == set(PROJECT["scripts"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [line for line in _shell_lines() if re.match(r"mcp-notebook (list|call) ", f"{line} ")],
)
def test_a_command_line_that_is_safe_to_run_works(line, home):
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    words = shlex.split(line)
    words[0] = Path(sys.executable).with_name(words[0])
    done = subprocess.run(
        words, cwd=home, env=kernel_env(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if "--save" in words:
        assert [path.suffix for path in home.glob("*.*") if path.is_file()] == [".png"]


def test_every_verb_and_option_of_the_command_is_in_the_readme():
    command = typer.main.get_command(cli.app)
    text = "\n".join([*INLINE, *_shell_lines()])
    missing = []
    for name, verb in command.commands.items():
        if f"mcp-notebook {name}" not in text:
            missing.append(name)
        for parameter in verb.params:
            if getattr(parameter, "hidden", False):
                continue
            options = [option for option in parameter.opts if option.startswith("--")]
            missing += [option for option in options if option not in text]
    assert missing == []


# -- magics and settings ---------------------------------------------------------------------------


def test_every_magic_verb_and_option_is_in_the_readme():
    for verb in VERBS:
        assert any(text.startswith(f"%mcp {verb}") for text in INLINE), verb
    assert "%%mcp_tool" in INLINE


def test_the_table_of_options_has_every_option_of_the_magic_and_every_keyword_and_no_other():
    table = README.partition("\n### Options\n")[2].partition("\n\nAnd about")[0]
    rows = re.findall(r"^\| (.*?) ?\| (.+?) \| .+ \|$", table, re.MULTILINE)[1:]
    on_the_line = {option for line, _ in rows for option in re.findall(r" (--[\w-]+)", line)}
    parser = McpMagics.mcp_tool.parser
    assert on_the_line == {*parser._option_string_actions} - {"-h", "--help"}
    keywords = {keyword for _, cell in rows for keyword in re.findall(r"(\w+)=", cell)}
    assert keywords == {option.name for option in fields(ToolOptions)} | {"prefix"}
    named = [
        parameter.name
        for parameter in inspect.signature(mcp_tool).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    assert named == [option.name for option in fields(ToolOptions)]


def test_the_table_of_meta_has_every_key_of_ours():
    rows = re.findall(r"^\| `([\w.-]+/\w+)` \|", README, re.MULTILINE)
    ours = [key for name, key in vars(meta_keys).items() if name.isupper() and name[0] != "_"]
    assert sorted([meta_keys.PREFIX, *rows]) == sorted(ours)


def test_the_options_of_the_table_are_ones_that_the_magic_takes():
    for text in INLINE:
        if text.startswith("%%mcp_tool --"):
            McpMagics.mcp_tool.parser.parse_argstring(text.removeprefix("%%mcp_tool "))


def test_everything_that_a_context_can_do_is_in_the_readme():
    shown = " ".join(INLINE)
    for name in dir(Context):
        if not name.startswith("_"):
            assert f"ctx.{name}" in shown, name


def test_every_setting_is_in_the_readme_with_its_variable_and_default():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([^|]+) \|", README, re.MULTILINE)
    table = {name: (variable, default) for name, variable, default in rows}
    assert list(table) == [option.name for option in fields(Settings)]
    settings = Settings(home=Path("~/.mcp-notebook"))
    for option in fields(Settings):
        variable, default = table[option.name]
        assert variable == option.metadata["env"]
        value = getattr(settings, option.name)
        if value is not None:
            assert default == f"`{value}`"
