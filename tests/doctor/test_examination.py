"""What `mcp-notebook doctor` says when settings that `install` wrote are broken in many ways."""

import json
import socket
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import forked_command
import pytest
from bridges import NEEDS_TWO_USERS, TOKEN, hold_port_of_another_user, http_bridge
from kernel_stand_ins import peer, welcome
from live import live_kernel, record_of
from msgspec import structs
from notebook_files import write_notebook
from served_folder import LOAD, PID
from typer.testing import CliRunner

import mcp_notebook
from mcp_notebook._version import __version__
from mcp_notebook.cli import main
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.discovery.records import write_record
from mcp_notebook.doctor import probes
from mcp_notebook.doctor.examination import examine
from mcp_notebook.mcp_client.stdio import open_command
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_check
from mcp_notebook.wire import messages

VARIABLES = (
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "MCP_NOTEBOOK_HOME",
    "MCP_NOTEBOOK_TOKEN",
    "XDG_CONFIG_HOME",
)


@pytest.fixture(scope="module")
def open_home(module_home):
    """A home folder with a notebook that has one tool."""
    with live_kernel(module_home, notebook="rain.ipynb") as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok("%%mcp_tool\ndef add(a: int, b: int):\n    return a + b")
        yield kernel


@pytest.fixture
def user(home, monkeypatch):
    """A machine with Cursor and Codex, and no open notebook."""
    (home / ".cursor").mkdir()
    (home / ".codex").mkdir()
    monkeypatch.chdir(home)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return home


@pytest.fixture(autouse=True)
def _commands_start_in_a_fraction_of_the_time(monkeypatch):
    """Fork the command that `install` writes (`forked_command`), if it runs this very package."""

    def start(words, *, env, **options):
        is_ours = list(words[:4]) == [sys.executable, "-P", "-m", "mcp_notebook"]
        if forked_command.are_forked and is_ours and "PYTHONPATH" not in env:
            words = forked_command.list_words(*words[4:])
        return open_command(words, env=env, **options)

    monkeypatch.setattr(probes, "open_command", start)


def run(*arguments, **env):
    return CliRunner().invoke(main.app, list(arguments), env=env)


def install(*arguments, **env):
    answer = run("install", *arguments, **env)
    assert answer.exit_code == 0, answer.output


def check(*arguments, **env):
    """Return what is printed about something wrong, in one line."""
    answer = run("doctor", *arguments, **env)
    assert answer.exit_code == 1, answer.output
    assert "✗" in answer.stdout
    assert answer.stdout.endswith("problem.\n") or answer.stdout.endswith("problems.\n")
    return " ".join(answer.stdout.split())


def check_well(*arguments, **env):
    """Return what is printed if nothing is wrong, in one line."""
    answer = run("doctor", *arguments, **env)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.endswith("\nNo problems.\n")
    return " ".join(answer.stdout.split())


def edit(user, **members):
    """Change Cursor's entry."""
    file = user / ".cursor" / "mcp.json"
    document = json.loads(file.read_text())
    document["mcpServers"]["notebook"] |= members
    file.write_text(json.dumps(document))


@pytest.mark.smoke
def test_the_tools_of_a_client_that_works_are_listed(user, open_home):
    home = str(open_home.home / ".mcp-notebook")
    install("cursor", MCP_NOTEBOOK_HOME=home)
    answer = run("doctor", "cursor", MCP_NOTEBOOK_HOME=home)
    assert answer.exit_code == 0, answer.output
    assert "  ✓ The notebook rain: 1 tool (add)." in answer.stdout.splitlines()
    title = answer.stdout.splitlines().index(
        f"Cursor: the server 'notebook' in {user}/.cursor/mcp.json"
    )
    tools, _, last = answer.stdout.splitlines()[title + 1 :]
    assert tools.startswith("  ✓ Its command starts in ")
    assert tools.endswith(" s and lists 1 tool (add).")
    assert last == "No problems."
    assert "\x1b" not in answer.stdout


def test_a_new_installation_is_healthy_and_told_the_next_step(user):
    said = check_well()
    assert "No client has an entry for mcp-notebook. `mcp-notebook install` lists" in said


def test_without_an_open_notebook_all_is_well_and_it_says_how_to_get_tools(user):
    install("cursor")
    said = check_well("cursor")
    assert "- Its command starts and lists no tools." in said
    assert "run `%load_ext mcp_notebook` and a cell that begins with `%%mcp_tool`" in said


def test_open_notebooks_in_another_home_folder_are_found(user, open_home):
    install("cursor")
    home = str(open_home.home / ".mcp-notebook")
    said = check("cursor", MCP_NOTEBOOK_HOME=home)
    assert f"looks for open notebooks in {user}/.mcp-notebook, but yours are in {home}." in said
    assert f"With MCP_NOTEBOOK_HOME={home} set, run `mcp-notebook install cursor --replace`" in said
    install("cursor", "--replace", MCP_NOTEBOOK_HOME=home)
    assert run("doctor", "cursor", MCP_NOTEBOOK_HOME=home).exit_code == 0


def test_a_kernel_that_does_not_answer_is_named(user, open_home):
    install("cursor")
    record = record_of(open_home)
    other = structs.replace(record, socket=f"{record.socket}.gone")
    write_record(user / ".mcp-notebook" / "kernels", other)
    assert "✗ The notebook rain cannot be reached: The kernel of 'rain' cannot" in check("cursor")


@pytest.mark.anyio
async def test_a_kernel_of_another_version_is_named_with_what_to_upgrade(user, capsys):
    install("cursor")
    settings = Settings(home=user / ".mcp-notebook")
    newer = welcome("top", protocol=messages.PROTOCOL_VERSION + 1)
    async with peer(user, newer, name="sales") as kernel:
        write_record(settings.records_folder, kernel.record)
        assert not await examine(settings, CLIENTS["cursor"])
    said = capsys.readouterr().out
    assert "✗ The notebook sales cannot be reached: " in said
    assert "upgrade" in said.lower()


def test_a_python_that_is_gone_is_named_with_what_writes_the_entry_anew(user):
    install("cursor", "--read-only")
    edit(user, command=f"{user}/venv/bin/python")
    said = check("cursor")
    assert f"Its command `{user}/venv/bin/python " in said
    assert "lists no tools: [Errno 2] No such file or directory" in said
    assert "run `mcp-notebook install cursor --replace --read-only`" in said
    install("cursor", "--replace", "--read-only")
    assert "lists no tools" in check_well("cursor")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "mcp-notebook", "args": ["stdio"]}, "No such file or directory"),
        ({"args": ["-I", "-S", "-m", "mcp_notebook"]}, "No module named mcp_notebook"),
        ({"args": ["-c", "raise SystemExit('no licence')"]}, "no licence"),
        ({"args": ["-P", "-m", "mcp_notebook", "stdio", "gone.ipynb"]}, "gone.ipynb"),
        ({"cwd": "/gone"}, "started in /gone, lists no tools: [Errno 2] No such file"),
    ],
)
def test_a_command_that_fails_is_shown_with_what_it_wrote(user, entry, reason):
    install("cursor")
    edit(user, **entry)
    said = check("cursor", PATH=str(Path(sys.executable).parent))  # not that of desktop programs
    command = entry.get("command", sys.executable)
    assert f"Its command `{command} " in said
    assert " lists no tools: " in said
    assert reason in said


@pytest.mark.slow
def test_another_version_is_named(user, tmp_path):
    copy = tmp_path / "mcp_notebook"
    copy.mkdir()
    package = Path(mcp_notebook.__file__).parent
    for path in package.iterdir():
        if path.name != "_version.py":
            (copy / path.name).symlink_to(path)
    (copy / "_version.py").write_text('__version__ = "0.0.7"\n')
    install("cursor")
    edit(user, env={"PYTHONPATH": str(tmp_path)})
    said = check("cursor")
    assert f"It starts mcp-notebook 0.0.7, but this is {__version__}." in said
    assert "or upgrade the older one" in said


def test_a_server_that_starts_for_longer_than_its_client_waits_is_named(user):
    install("codex")
    file = user / ".codex" / "config.toml"
    script = "import sys; sys.stdin.read()"
    file.write_text(
        f'[mcp_servers.notebook]\ncommand = "{sys.executable}"\n'
        f"args = ['-c', '{script}']\nstartup_timeout_sec = 0.5\n"
    )
    said = check("codex")
    assert "It did not list its tools within 0.5 s, the timeout of Codex CLI." in said
    assert f"raise the timeout (`startup_timeout_sec` in {file})" in said


def test_a_command_that_speaks_no_mcp_is_named_without_tracebacks(user):
    install("cursor")
    edit(user, args=["-c", "print('hello')"])
    answer = run("doctor", "cursor")
    assert answer.exit_code == 1
    assert "lists no tools: Connection closed" in answer.stdout
    assert "Traceback" not in answer.output


def test_a_folder_is_checked_by_what_its_notebooks_offer(user):
    folder = user / "work"
    write_notebook(folder / "plain.ipynb", "1 + 1")
    install("cursor", str(folder))
    assert "Its command starts and lists no tools." in check_well("cursor")
    write_notebook(folder / "new.ipynb", LOAD, PID)
    said = check_well("cursor")
    assert " s and lists 3 tools (run_notebook, pid, suicide)." in said


def test_a_remote_server_that_does_not_answer_is_named(user):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    install("codex", "--url", f"http://127.0.0.1:{port}/mcp")
    file = user / ".codex" / "config.toml"
    file.write_text(file.read_text() + "startup_timeout_sec = 30\n")
    said = check("codex")
    assert f"127.0.0.1:{port}" in said
    assert "lists no tools" in said


def test_an_entry_without_a_command_is_named(user):
    (user / ".cursor" / "mcp.json").write_text('{"mcpServers": {"notebook": {"args": 3}}}')
    said = check("cursor")
    assert "neither a command nor an address. Run `mcp-notebook install cursor --replace`" in said


def test_settings_that_are_not_valid_are_named_and_left_alone(user):
    file = user / ".cursor" / "mcp.json"
    file.write_text("{")
    for arguments in ((), ("cursor",)):
        said = check(*arguments)
        assert f"Cursor's settings, {file}, were not changed: the file is not valid JSON" in said
        assert "Fix it, or paste the output of `mcp-notebook install cursor --print`" in said
    assert file.read_text() == "{"


# -- over HTTP -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_address_is_asked_with_the_token_that_the_client_sends(user, open_home):
    with http_bridge(open_home.home) as served:
        install("cursor", "--http")
        edit(user, url=served.url)
        answer = run("doctor", "cursor", MCP_NOTEBOOK_TOKEN=TOKEN)
        assert answer.exit_code == 0, answer.output
        assert f"✓ {served.url} answers." in answer.stdout
        assert TOKEN not in answer.output
        said = check("cursor", MCP_NOTEBOOK_TOKEN="x" * 40)
        assert f"{served.url} does not accept the token that Cursor sends." in said
        said = check("cursor")
        assert "from the variable MCP_NOTEBOOK_TOKEN, which is not set here" in said
        assert f"the token in the file {user}/.mcp-notebook/token where Cursor is started" in said


def test_a_bridge_that_does_not_run_is_named(user):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    install("cursor", "--http")
    edit(user, url=url)
    said = check("cursor", MCP_NOTEBOOK_TOKEN=TOKEN)
    assert f"Nothing answers at {url}." in said
    assert "Start a bridge there (`%mcp serve` or `mcp-notebook serve`)" in said
    edit(user, url="not an address")
    assert "Nothing answers at not an address." in check("cursor", MCP_NOTEBOOK_TOKEN=TOKEN)


@contextmanager
def other_program():
    """Serve a program that is no bridge, and yield its port and the headers that it got."""
    headers = []

    class Handler(BaseHTTPRequestHandler):
        def log_request(self, *_):
            headers.append(dict(self.headers))  # of each request, whatever its method

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, headers
        finally:
            server.shutdown()
            thread.join()


@NEEDS_TWO_USERS
def test_another_user_who_has_taken_the_port_gets_no_token(user):
    install("cursor", "--http")
    with hold_port_of_another_user() as port:
        edit(user, url=f"http://127.0.0.1:{port}/mcp")
        said = check("cursor", MCP_NOTEBOOK_TOKEN=TOKEN)
    assert f"{port}/mcp is in use by a program of another user" in said


def test_an_address_of_another_machine_without_encryption_gets_no_token(user):
    install("cursor", "--http")
    edit(user, url="http://tools.example.com/mcp")
    said = check("cursor", MCP_NOTEBOOK_TOKEN=TOKEN)
    assert "is on another machine and not encrypted" in said
    assert "Use an address with https://, or `mcp-notebook connect`." in said


def test_a_client_that_is_not_connected_is_told_what_to_do(user):
    said = check("cursor")
    assert f"Cursor is not connected: {user}/.cursor/mcp.json has no entry" in said
    assert "Run `mcp-notebook install cursor`." in said


def test_marks_are_letters_where_stdout_cannot_write_them(monkeypatch, capsys):
    print_check("✓", "one\ntwo", is_wrong=False)
    assert capsys.readouterr().out == "  ✓ one\n    two\n"


@pytest.mark.parametrize(
    ("client", "file", "section"),
    [
        ("mcp.json", ".mcp.json", "mcpServers"),
        pytest.param(*("vscode-workspace", ".vscode/mcp.json", "servers"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", ["command", "helper", "token"])
def test_settings_that_come_with_a_folder_run_nothing_and_get_no_token_until_they_are_named(
    user, client, file, section, kind
):
    canary = user / "canary"
    with other_program() as (port, requests):
        url = f"http://127.0.0.1:{port}/mcp"
        entry = {
            "command": {"command": "sh", "args": ["-c", f"touch {canary}", "mcp-notebook"]},
            "helper": {"url": url, "headersHelper": f"touch {canary}"},
            "token": {"url": url, "headers": {"Authorization": "Bearer ${MCP_NOTEBOOK_TOKEN}"}},
        }[kind]
        (user / file).parent.mkdir(exist_ok=True)
        (user / file).write_text(json.dumps({section: {"notebook": entry}}))
        answer = run("doctor", MCP_NOTEBOOK_TOKEN=TOKEN)
        assert "It belongs to this folder, so it was not checked." in answer.stdout
        assert f"`mcp-notebook doctor {client}`" in answer.stdout
        assert not canary.exists()
        assert not requests
        run("doctor", client, MCP_NOTEBOOK_TOKEN=TOKEN)
        assert canary.exists() or requests
