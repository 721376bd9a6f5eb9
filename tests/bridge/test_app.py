import os
import signal
import socket
import sys
from functools import partial
from urllib.parse import urlsplit

import anyio
import pytest
from bridges import (
    COMMAND,
    NEEDS_TWO_USERS,
    TOKEN,
    ask,
    bridge,
    hold_port_of_another_user,
    http_bridge,
)
from forked_command import find_pid
from live import find_free_port, live_kernel

from mcp_notebook import __version__
from mcp_notebook.bridge.http_app import run_http
from mcp_notebook.bridge.transports.http import open_listener
from mcp_notebook.bridge.transports.known_ports import read_last_port
from mcp_notebook.discovery.records import BridgeRecord, read_bridge, read_start_time
from mcp_notebook.settings.private_files import write_private, write_private_json
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

QUICKLY = {"MCP_NOTEBOOK_IDLE_MINUTES": "0"}


def _background(home, command=None, **env):
    return bridge(home, "serve", "--background", env=env, command=command)


def _first_lines(running):
    """Return what a bridge said, without the note that the usual port is in use: it may be."""
    return [line for line in running.said.splitlines() if not line.startswith("Note: ")]


def _settings(home):
    return Settings(home=home / ".mcp-notebook")


def _remember(home, port):
    write_private(_settings(home).home / "port", str(port))


@pytest.fixture(scope="module", autouse=True)
def without_notebook(module_home):
    """A background bridge with nothing to do, started first: its end is waited for last."""
    with _background(module_home, **QUICKLY) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def with_notebook(module_home):
    """Another user's background bridge that ends as quickly, and a kernel that keeps it."""
    home = module_home / "b"
    home.mkdir()
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok('%%mcp_tool\ndef add(a: int) -> int:\n    "Add."\n    return a + 1')
        with _background(home, **QUICKLY) as running:
            yield running, kernel


# -- what it says ----------------------------------------------------------------------------------


@pytest.mark.smoke
def test_the_first_lines_tell_address_token_file_and_tools(with_notebook):
    running, kernel = with_notebook
    settings = _settings(kernel.home)
    token = settings.token_path.read_text().strip() if running.url else ""
    assert _first_lines(running) == [
        f"Serving at {running.url}",
        f"Token:     in the file {settings.token_path}",
        f"Connect:   mcp-notebook install claude-code --http --url {running.url}",
        "Tools:     add",
    ]
    assert token not in running.said
    assert ask(running.url, headers={"Authorization": f"Bearer {token}"}).status == 200


def test_without_a_tool_the_first_lines_tell_what_to_do(without_notebook):
    told = without_notebook.wait_said(r"Tools: .*\n")[0]
    assert told == (
        "Tools:     none yet. "
        "Open a notebook, run `%load_ext mcp_notebook` and a `%%mcp_tool` cell.\n"
    )


def test_if_the_options_leave_out_all_tools_the_first_lines_name_them(with_notebook):
    _, kernel = with_notebook
    with bridge(kernel.home, "serve", "--port", "0", "--tools", "typo") as running:
        told = running.wait_said(r"Tools: .*\n")[0]
    options = "--tools, --exclude or --read-only"
    assert told == f"Tools:     none. {options} leaves out all of them: add.\n"


# -- the address from day to day -------------------------------------------------------------------


def test_the_background_bridge_has_the_same_address_and_token_the_next_day(home):
    port = find_free_port()
    _remember(home, port)
    tokens = set()
    for _ in range(2):
        with _background(home) as running:
            assert running.url == f"http://127.0.0.1:{port}/mcp"
            pid = find_pid(running.process.pid)
            record = read_bridge(_settings(home).bridge_file)
            assert record == BridgeRecord(
                pid=pid,
                started=read_start_time(pid),
                version=__version__,
                url=running.url,
            )
            tokens.add(_settings(home).token_path.read_text())
            assert running.end()[0] == 0
            assert not _settings(home).bridge_file.exists()
    assert len(tokens) == 1
    (known,) = (_settings(home).home / "ports").read_text().splitlines()
    assert known.endswith(f" {port}")  # a token that was served there is void if others take it


def test_a_remembered_port_that_the_user_took_is_replaced_and_that_is_said(home):
    write_private(_settings(home).token_path, TOKEN)
    with open_listener(Settings(port=0)) as other:
        taken = other.getsockname()[1]
        _remember(home, taken)
        with _background(home) as running:
            port = urlsplit(running.url).port
            assert port != taken
            assert read_last_port(_settings(home)) == port
            notice = (
                f"Port {taken} is in use by another process of yours, so this one has port {port}."
            )
            assert f"Note:      {notice}\n" in running.said
            assert read_bridge(_settings(home).bridge_file).notices == (notice,)
            assert ask(running.url).status == 200


@NEEDS_TWO_USERS
@pytest.mark.parametrize("arguments", [["--background"], pytest.param([], marks=pytest.mark.slow)])
def test_a_port_that_another_user_took_is_told_and_left_with_a_new_token(home, arguments):
    """Clients that were set up for it send the old token to that user."""
    settings = _settings(home)
    write_private(settings.token_path, TOKEN)
    with hold_port_of_another_user() as taken:
        _remember(home, taken)
        with bridge(home, "serve", *arguments) as running:
            assert (
                f"Note:      Port {taken} is in use, but not by you: "
                in running.wait_said(r"(?s).*Tools: .*\n")[0]
            )
            assert ask(running.url).status == 401
            token = settings.token_path.read_text().strip()
            assert ask(running.url, headers={"Authorization": f"Bearer {token}"}).status == 200
            assert token not in running.said
            assert urlsplit(running.url).port == read_last_port(settings) != taken


@NEEDS_TWO_USERS
def test_a_port_that_another_user_took_ends_a_bridge_whose_token_cannot_be_replaced(home):
    with hold_port_of_another_user() as taken:
        _remember(home, taken)
        with bridge(home, "serve", "--background", env={"MCP_NOTEBOOK_TOKEN": TOKEN}) as running:
            assert running.wait() == 1
            assert running.said.startswith(f"Port {taken} is in use, but not by you: ")
            assert running.said.endswith(" Then choose another port with --port.\n")
            assert TOKEN not in running.said


# -- one background bridge -------------------------------------------------------------------------


def test_a_second_background_bridge_leaves_the_first_alone(with_notebook, capfd):
    running, kernel = with_notebook
    settings = _settings(kernel.home)
    assert running.url
    before = settings.bridge_file.read_bytes()
    assert settings.bridge_file.stat().st_mode & 0o777 == 0o600
    anyio.run(partial(run_http, settings, background=True))
    assert capfd.readouterr() == ("", "")
    assert settings.bridge_file.read_bytes() == before


@pytest.mark.slow
def test_the_record_of_a_killed_bridge_is_replaced(home):
    bridge_file = _settings(home).bridge_file
    with _background(home, COMMAND) as first:
        assert first.url
        first.end(signal.SIGKILL)
    assert bridge_file.exists()
    with _background(home, COMMAND) as second:
        assert second.url
        assert read_bridge(bridge_file).pid == second.process.pid


def test_a_bridge_that_ends_leaves_the_record_of_another_alone(home):
    bridge_file = _settings(home).bridge_file
    with _background(home) as running:
        pid = os.getpid()
        other = BridgeRecord(pid=pid, started=read_start_time(pid), version="9", url=running.url)
        write_private_json(bridge_file, other)
        assert running.end()[0] == 0
    assert read_bridge(bridge_file) == other


# -- bad files -------------------------------------------------------------------------------------


def test_bad_files_among_the_records_end_no_bridge_and_are_named_once(with_notebook):
    running, kernel = with_notebook
    folder = _settings(kernel.home).records_folder
    bad = [folder / f"bad-{number}.json" for number in range(3)]
    try:
        (record,) = folder.glob("*.json")
        bad[0].write_text(record.read_text().replace('"pid": ', '"pid": -'))
        running.wait_said("bad-0.json', not a valid record: expected `int` >= 1 at")
        os.mkfifo(bad[1])
        running.wait_said("bad-1.json', not a valid record: it is not a regular file")
        bad[2].symlink_to("nowhere")
        running.wait_said("bad-2.json', not a valid record")
        assert running.said.count("Ignoring") == len(bad)
        assert running.process.poll() is None
    finally:
        for path in bad:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, partial(write_private, text='{"pid": -5}')])
def test_a_bad_file_in_the_place_of_the_bridges_record_or_port_is_none(home, make):
    settings = _settings(home)
    settings.home.mkdir()
    for name in ("bridge.json", "port"):
        make(settings.home / name)
    assert read_bridge(settings.bridge_file) is None
    assert read_last_port(settings) is None


# -- its end ---------------------------------------------------------------------------------------


def test_an_interrupt_ends_it_soon_although_clients_are_there(home):
    with http_bridge(home) as running:
        parts = urlsplit(running.url)
        with (
            socket.create_connection((parts.hostname, parts.port), timeout=60) as silent,
            socket.create_connection((parts.hostname, parts.port), timeout=60) as slow,
        ):
            slow.sendall(
                f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )
            assert ask(running.url).status == 200  # what was sent before has come in, too
            status, seconds = running.end(signal.SIGINT)
            assert silent.recv(1) == b""
    assert status == 130
    assert seconds < running.soon
    assert len(running.said.splitlines()) == 4, running.said


@pytest.mark.slow
def test_a_background_bridge_ends_some_time_after_the_last_notebook_has_gone(
    without_notebook, with_notebook
):
    assert without_notebook.wait() == 0
    assert "stops after 0 minutes without a notebook" in without_notebook.said
    running, kernel = with_notebook
    assert running.process.poll() is None
    kernel.manager.shutdown_kernel(now=True)
    assert running.wait() == 0
    assert "stops after 0 minutes without a notebook" in running.said
    assert not _settings(kernel.home).bridge_file.exists()
