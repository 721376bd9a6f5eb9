"""What to copy into a client's settings, and what follows."""

import json
import subprocess
import sys
import tomllib
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.clients.client import Endpoint, Launch
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.rendering import render_document
from mcp_notebook.clients.snippets import format_install_command, list_steps
from mcp_notebook.settings.settings import Settings

URL = "http://127.0.0.1:8791/mcp"
READERS = {"json": json.loads, "toml": tomllib.loads}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LAUNCHES = st.builds(
    Launch,
    command=TEXTS,
    arguments=st.lists(TEXTS).map(tuple),
    env=st.dictionaries(TEXTS, TEXTS),
    runs_notebooks=st.booleans(),
)


def read(client, text):
    """Return the entries by their names."""
    entries = READERS[client.syntax](text)[client.section]
    return {entry.pop("name"): entry for entry in entries} if client.has_list else entries


ONE_OF_EACH_SYNTAX = ("vscode", "codex")


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(client, marks=() if name in ONE_OF_EACH_SYNTAX else pytest.mark.slow)
        for name, client in CLIENTS.items()
    ],
    ids=CLIENTS,
)
@given(launch=LAUNCHES)
def test_what_is_shown_is_a_valid_file_with_the_entry(client, launch):
    entry = client.make_entry(launch)
    assert read(client, render_document(client, entry, "weather")) == {"weather": entry}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_that_starts_a_command_has_one_next_step(client):
    launch = Launch(command="py", arguments=(), env={}, runs_notebooks=False)
    assert list_steps(client, launch) == [client.next_step]


def test_a_variable_that_a_client_reads_is_to_be_set_first():
    endpoint = Endpoint(
        url="http://127.0.0.1:8791/mcp", token_file=None, token_place="the file token"
    )
    first, second = list_steps(CLIENTS["cursor"], endpoint)
    assert first.startswith("Set MCP_NOTEBOOK_TOKEN where Cursor is started: ")
    assert first.endswith("The token is in the file token.")
    assert second == CLIENTS["cursor"].next_step


def test_a_kernel_loads_no_library_for_it():
    code = "import mcp_notebook.clients.snippets, mcp_notebook.clients.servers, sys; "
    code += "assert not {'yaml', 'mcp'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the line for a shell --------------------------------------------------------------------------


def test_the_command_for_a_client_is_words_that_need_no_quotes_in_any_shell():
    command = format_install_command(Settings(), URL)
    assert command == f"mcp-notebook install claude-code --http --url {URL}"
    assert format_install_command(Settings(token="very-secret"), URL) == command


def test_the_command_names_the_file_of_the_token_for_an_address_that_other_machines_may_have():
    command = format_install_command(Settings(), "https://example.org:8791/mcp")
    assert command.endswith(f" --token-file {Settings().token_path.absolute()}")
    command = format_install_command(Settings(token="very-secret"), "https://example.org:8791/mcp")
    assert command.endswith(" --token-file env:MCP_NOTEBOOK_TOKEN")


def _list_shells():
    """Return the shells of this machine, with how each is given a line."""
    found = {name: path for name in ("bash", "dash", "fish", "zsh") if (path := which(name))}
    return [[path, "-c"] for path in found.values()] or [["/bin/sh", "-c"]]


@pytest.mark.parametrize("name", ["a b", "ü", "it's", "a\\b", 'a"b', "$HOME", "a`b`", "50%", "a!b"])
@pytest.mark.skipif(sys.platform == "win32", reason="shells of POSIX")
def test_a_shell_reads_the_place_of_the_token_as_it_is(tmp_path, name):
    settings = Settings(token_file=tmp_path / name)
    command = format_install_command(settings, URL)
    *_, quoted = command.split(" --token-file ")
    for shell in _list_shells():
        words = [*shell, f"printf %s {quoted}"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout == str(tmp_path / name)


@pytest.mark.parametrize("name", ["a b", "it's", "(a)", "a&b", "a;b", "a|b", "{a,b}", "~a", "*"])
def test_quotes_are_those_that_powershell_and_cmd_have_too(tmp_path, name):
    """By their rules: double quotes keep all but $ and ` in PowerShell, and all but % in cmd."""
    command = format_install_command(Settings(token_file=tmp_path / name), URL)
    assert command.endswith(f' --token-file "{tmp_path / name}"')
