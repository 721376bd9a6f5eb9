"""The command `mcp-notebook connect` itself: what it refuses, how it ends, what it never says."""

import json
import socket
import subprocess

import pytest
from bridges import INITIALIZE, LIMIT, PING, TOKEN, bridge, http_bridge


@pytest.fixture(scope="module")
def remote(module_home):
    """A bridge over HTTP without a notebook."""
    with http_bridge(module_home) as running:
        yield running


def connect(home, *arguments):
    env = {"SALES_TOKEN": TOKEN}
    return bridge(home, "connect", *arguments, env=env, stdin=subprocess.PIPE)


def test_what_cannot_be_connected_to_ends_the_command_and_is_told_to_the_client(home):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with connect(home, f"http://127.0.0.1:{port}/mcp") as running:
        running.send(json.dumps(INITIALIZE).encode())
        answer = running.message()
        assert answer["id"] == INITIALIZE["id"]
        assert "the connection was refused" in answer["error"]["message"]
        running.process.stdin.close()
        assert running.wait() == 1
        assert answer["error"]["message"] in running.said


def test_a_client_that_leaves_while_the_server_starts_ends_the_command(home):
    """Here the server never answers, as one that takes its time."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        connect(home, f"http://127.0.0.1:{listener.getsockname()[1]}/mcp") as running,
    ):
        running.send(json.dumps(INITIALIZE).encode())
        asked, _ = listener.accept()
        with asked:
            running.process.stdin.close()
            assert running.wait() == 0


def test_without_a_client_the_command_waits_and_shows_what_is_wrong(home):
    """As for a user who runs it in a shell script, with nothing to read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        with bridge(home, "connect", address, stdin=subprocess.DEVNULL) as running:
            asked, _ = listener.accept()
            asked.close()
            assert running.wait() == 1
            assert "was lost before the answer came" in running.said


def test_nothing_is_sent_in_clear_to_another_machine(home):
    with connect(home, "http://192.0.2.1/mcp", "--token-file", "env:SALES_TOKEN") as running:
        running.process.stdin.close()
        assert running.wait() == 1
        assert "add --insecure" in running.said
        assert TOKEN not in running.said


def test_a_token_in_the_address_is_used_with_a_warning_and_never_shown(home, remote):
    with connect(home, f"{remote.url}?token={TOKEN}") as running:
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["result"]["serverInfo"]["name"]
        assert "every user of this machine can read" in running.wait_said("Connected to.*\n").string
        running.process.stdin.close()
        assert running.wait() == 0
        assert TOKEN not in running.said


def test_an_invalid_message_is_answered_and_the_connection_continues(home, remote):
    with connect(home, remote.url, "--token-file", "env:SALES_TOKEN") as running:
        running.send(json.dumps(INITIALIZE).encode())
        running.message()
        running.send(b"hello?")
        assert running.message()["error"]["code"] == -32700
        running.send(b"")
        running.send(json.dumps(PING).encode())
        assert running.message()["result"] == {}


def test_a_client_that_has_left_is_the_end(home, remote):
    with connect(home, remote.url, "--token-file", "env:SALES_TOKEN") as running:
        running.send(json.dumps(INITIALIZE).encode())
        running.message()
        status, seconds = running.end()
        assert status == 130
        assert seconds < LIMIT / 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["sales.ipynb"], "mcp-notebook stdio FILE"),
        (["http://localhost:1/mcp", "--token-file", "env:NOT_SET"], "NOT_SET is not set"),
        (["http://localhost:1/mcp", "--token-file", "absent"], "absent: No such file"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said(home, arguments, reason):
    with connect(home, *arguments) as running:
        running.process.stdin.close()
        assert running.wait() == 1
        assert reason in running.said
