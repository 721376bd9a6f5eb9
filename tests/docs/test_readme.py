"""The README: one screen that says what this is and how to begin."""

import re
import tomllib

from documents import GETTING_STARTED, README, ROOT, SETUP

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_readme_is_one_screen():
    assert len(README.text.splitlines()) <= 100


def test_the_first_screen_shows_three_cells_and_the_result():
    screen = README.text.splitlines()[:45]
    assert screen.count("```python") == 3
    assert any(re.match(r"!\[|<img ", line.strip()) for line in screen)


def test_its_cells_are_those_of_the_page_to_start_with():
    assert README.code("python") == GETTING_STARTED.code("python")[:3]


def test_the_two_commands_that_do_all_setup_are_there_word_for_word():
    for command in SETUP:
        assert command in README.shell_lines
    assert {"demo", "test"} <= set(PROJECT["optional-dependencies"])


def test_three_clients_are_configured():
    (claude,) = (line for line in README.shell_lines if line.startswith("claude mcp add "))
    assert claude.endswith(" mcp-notebook stdio")
    assert len(list(README.servers())) == 2


def test_it_leads_to_each_part_of_the_site():
    parts = {link.split("/")[1] for link in README.links if link.startswith("docs/")}
    assert parts >= {"getting-started.md", "guides", "reference", "operate", "contribute"}
