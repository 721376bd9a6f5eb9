"""What a client is told to start or to connect to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_notebook.clients.client import Remote
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.servers import (
    build_connection,
    build_endpoint,
    build_launch,
    build_server,
)
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings

CLAUDE_CODE, CURSOR, CODEX = (CLIENTS[name] for name in ("claude-code", "cursor", "codex"))


def test_a_client_starts_the_interpreter_of_this_process():
    launch = build_launch(CURSOR, Settings())
    assert launch.command == sys.executable
    assert Path(launch.command).is_absolute()
    assert launch.arguments == ("-P", "-m", "mcp_notebook", "stdio")
    assert not launch.env
    assert not launch.runs_notebooks


def test_the_command_runs_without_any_variable_in_a_folder_with_modules_of_that_name(tmp_path):
    for name in ("random.py", "mcp_notebook.py", "types.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    launch = build_launch(CURSOR, Settings())
    done = subprocess.run(
        [launch.command, *launch.arguments, "--help"],
        env={"TERM": "dumb"}
        | ({"SYSTEMROOT": os.environ["SYSTEMROOT"]} if os.name == "nt" else {}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout


def test_another_home_is_passed_on(tmp_path):
    launch = build_launch(CURSOR, Settings(home=tmp_path))
    assert launch.env == {"MCP_NOTEBOOK_HOME": str(tmp_path)}


def test_a_client_that_sees_no_new_tools_gets_meta_tools_once():
    assert build_launch(CODEX, Settings()).arguments[-1] == "--meta-tools"
    options = ("--meta-tools", "--read-only")
    assert build_launch(CODEX, Settings(), (), options).arguments[-2:] == options


def test_notebooks_are_named_by_their_full_paths(tmp_path, monkeypatch):
    (tmp_path / "a b.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    launch = build_launch(CURSOR, Settings(), [Path("a b.ipynb")], ["--read-only"])
    assert launch.arguments[-2:] == ("--read-only", str(tmp_path / "a b.ipynb"))
    assert launch.runs_notebooks


def test_a_folder_of_notebooks_takes_no_time_to_start(tmp_path):
    launch = build_launch(CURSOR, Settings(), [tmp_path])
    assert launch.arguments[-1] == str(tmp_path)
    assert not launch.runs_notebooks


def test_a_notebook_that_does_not_exist_is_refused():
    with pytest.raises(ClientError, match=r"'nowhere.ipynb' does not exist. Check the path"):
        build_launch(CURSOR, Settings(), [Path("nowhere.ipynb")])


def test_an_endpoint_is_that_of_the_settings_or_the_one_that_is_named(tmp_path):
    settings = Settings(home=tmp_path, port=9_000)
    assert build_endpoint(CURSOR, settings).url == "http://127.0.0.1:9000/mcp"
    assert build_endpoint(CURSOR, settings, "https://hub/mcp").url == "https://hub/mcp"


@pytest.mark.skipif(sys.platform == "win32", reason="it reads the file with a program of Unix")
def test_a_client_that_can_reads_the_tokens_file(tmp_path):
    claude = CLIENTS["claude-code"]
    settings = Settings(home=tmp_path)
    assert build_endpoint(claude, settings).token_file == tmp_path / "token"
    assert build_endpoint(claude, Settings(home=tmp_path, token="t")).token_file is None
    assert build_endpoint(CURSOR, settings).token_file is None


@pytest.mark.parametrize("name", ["claude-desktop", "zed"])
def test_a_client_that_would_need_the_token_itself_gets_no_address(name):
    with pytest.raises(ClientError, match=r"would see a token there. Omit --http"):
        build_endpoint(CLIENTS[name], Settings())


def test_what_only_a_command_can_be_told_is_refused_with_an_address(tmp_path):
    notebook = tmp_path / "a.ipynb"
    notebook.touch()
    remote = Remote(address="https://hub/mcp")
    with pytest.raises(
        ClientError, match="'--read-only' has no effect with --http, because Cursor does"
    ):
        build_server(CURSOR, Settings(), options=["--read-only"], http=True)
    with pytest.raises(ClientError, match=r"has no effect with --url, .*`mcp-notebook serve`"):
        build_server(CURSOR, Settings(), [notebook], remote=remote)


def test_a_client_connects_itself_to_the_address_of_a_bridge(tmp_path):
    token = tmp_path / "ci.token"
    token.touch()
    remote = Remote(address="http://127.0.0.1:9/mcp", token_source=str(token))
    endpoint = build_server(CLAUDE_CODE, Settings(token="t"), http=True, remote=remote)
    assert (endpoint.url, endpoint.token_file) == ("http://127.0.0.1:9/mcp", token)
    remote = Remote(address="http://127.0.0.1:9/mcp")
    endpoint = build_server(CLAUDE_CODE, Settings(home=tmp_path), http=True, remote=remote)
    assert endpoint.token_file == tmp_path / "token"
    remote = Remote(address="https://hub/mcp", token_source="env:T")
    with pytest.raises(ClientError, match="Omit --http, or name a file or env:MCP_NOTEBOOK_TOKEN"):
        build_server(CURSOR, Settings(), http=True, remote=remote)


def test_a_remote_server_is_reached_by_a_command(tmp_path):
    file = tmp_path / "token"
    file.touch()
    for remote, options in [
        (Remote(address="https://hub/mcp"), ()),
        (Remote(address="https://hub/mcp", token_source=str(file)), ("--token-file", str(file))),
        (Remote(address="https://hub/mcp", token_source="env:HUB"), ("--token-file", "env:HUB")),
        (
            Remote(address="https://hub/mcp", token_source="env:HUB"),
            ("--token-file", "env:HUB"),
        ),
    ]:
        launch = build_server(CODEX, Settings(), remote=remote)
        assert launch.arguments == (
            *("-P", "-m", "mcp_notebook", "connect", "https://hub/mcp"),
            *options,
        )


@pytest.mark.parametrize(
    "address", ["https://hub/lab?token=secret", "https://ada:secret@hub/lab", "ada:secret@hub"]
)
def test_a_secret_in_an_address_stays_out_of_settings(address):
    with pytest.raises(ClientError, match="anyone who reads the client's settings") as failure:
        build_connection(Remote(address=address))
    assert "secret" not in str(failure.value)


def test_a_token_file_that_does_not_exist_is_named(tmp_path):
    missing = tmp_path / "hub.token"
    with pytest.raises(ClientError, match=r"no file '.*hub.token'. Write the token for https://"):
        build_connection(Remote(address="https://hub/mcp", token_source=str(missing)))
