"""The README: one screen that says what this is and how to begin."""

import re
import tomllib

from documents import GETTING_STARTED, README, ROOT, SETUP

from mcp_notebook.clients.known_clients import CLIENTS

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


def test_a_client_is_connected_by_one_line_and_any_other_by_another():
    (line,) = (line for line in README.shell_lines if line.startswith("mcp-notebook install "))
    assert line.split()[-1] in CLIENTS
    assert len(list(README.servers())) == 1
    for client in CLIENTS.values():
        assert client.belongs_to_folder or client.title in README.text


def test_it_leads_to_each_part_of_the_site():
    parts = {link.split("/")[1] for link in README.links if link.startswith("docs/")}
    assert parts >= {"getting-started.md", "guides", "reference", "operate", "contribute"}
