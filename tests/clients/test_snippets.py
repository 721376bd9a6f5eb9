"""What to copy into a client's settings."""

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.clients.client import Endpoint, Launch, Machine
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.rendering import name_entry, render_document
from mcp_notebook.clients.snippets import format_claude_command, render_snippet
from mcp_notebook.settings.settings import Settings

URL = "http://127.0.0.1:8791/mcp"
MACHINE = Machine(platform="linux", home=Path("/home/ada"), folder=Path("/work"), env={})
READERS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
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
    servers = READERS[client.syntax](text)[client.section]
    return {entry["name"]: entry for entry in servers} if client.is_list else servers


ONE_OF_EACH_SYNTAX = ("vscode", "codex", "goose", "continue")


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
    entry = name_entry(client, client.make_entry(launch), "weather")
    assert read(client, render_document(client, entry, "weather")) == {"weather": entry}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_snippet_says_where_it_belongs_and_what_follows(client):
    launch = Launch(command="py", arguments=(), env={}, runs_notebooks=False)
    snippet = render_snippet(client, launch, MACHINE)
    assert snippet.file == client.find_file(MACHINE)
    assert list(read(client, snippet.text)) == ["notebook"]
    assert snippet.steps == (client.next_step,)
    assert bool(snippet.link) == (client.name in ("vscode", "vscode-workspace", "cursor"))


def test_a_variable_that_a_client_reads_is_to_be_set_first():
    endpoint = Endpoint(
        url="http://127.0.0.1:8791/mcp", token_file=None, token_place="the file token"
    )
    first, second = render_snippet(CLIENTS["cursor"], endpoint, MACHINE).steps
    assert first.startswith("Set MCP_NOTEBOOK_TOKEN where Cursor is started: ")
    assert first.endswith("The token is in the file token.")
    assert second == CLIENTS["cursor"].next_step


def test_lines_to_paste_into_yaml_come_with_what_is_there_already(tmp_path):
    machine = replace(MACHINE, home=tmp_path)
    launch = Launch(command="py", arguments=(), env={}, runs_notebooks=False)

    def steps():
        return render_snippet(CLIENTS["continue"], launch, machine).steps[:-1]

    file = CLIENTS["continue"].find_file(machine)
    file.parent.mkdir()
    assert steps() == ()
    file.with_name("config.json").write_text('{"models": [1]}')
    (step,) = steps()
    assert f"its settings in {file.with_name('config.json')}, and ignores them once {file}" in step
    file.write_text("models: []\n")
    (step,) = steps()
    assert "already has (`name`, `version`, `schema`, `mcpServers`)." in step


def test_a_kernel_loads_no_library_for_it():
    code = "import mcp_notebook.clients.snippets, mcp_notebook.clients.servers, sys; "
    code += "assert not {'yaml', 'mcp'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the line for a shell --------------------------------------------------------------------------

FAKE_CLAUDE = """#!/bin/sh
printf '%s\\n' "$@"
"""


def _paste(command, folder):
    """Return the arguments that `claude` gets when its command is pasted into a shell."""
    claude = folder / "claude"
    claude.write_text(FAKE_CLAUDE)
    claude.chmod(0o700)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "MCP_NOTEBOOK_TOKEN": "secret"}
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


SHELL = pytest.mark.skipif(sys.platform == "win32", reason="a command for a POSIX shell")


@SHELL
def test_the_command_for_a_client_lets_it_read_the_token_from_the_file(tmp_path):
    """`claude` runs `headersHelper` in a shell whenever it connects; it was tried with 2.1.197."""
    home = tmp_path / 'my "home\'s" ü'
    home.mkdir()
    (home / "token").write_text("secret\n")
    command = format_claude_command(Settings(home=home), URL)
    *words, server = _paste(command, tmp_path)
    assert words == ["mcp", "add-json", "notebook"]
    assert "secret" not in server
    server = json.loads(server)
    helper = server.pop("headersHelper")
    assert server == {"type": "http", "url": URL}
    done = subprocess.run(["/bin/sh", "-c", helper], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"Authorization": "Bearer secret"}


@SHELL
def test_the_command_for_a_client_names_the_variable_of_the_token(tmp_path):
    command = format_claude_command(Settings(token="secret"), URL)
    *words, header = _paste(command, tmp_path)
    assert words == ["mcp", "add", "--transport", "http", "notebook", URL, "--header"]
    assert header == "Authorization: Bearer ${MCP_NOTEBOOK_TOKEN}"
