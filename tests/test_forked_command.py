"""What tests start in place of `mcp-notebook` behaves as that does."""

import signal
import socket
import subprocess
import sys

import forked_command
import psutil
import pytest
from live import TIMEOUT, kernel_env

pytestmark = pytest.mark.skipif("not forked_command.are_forked")


@pytest.fixture
def start(home):
    """Start a program, with pipes."""

    def start(*words, **env):
        return subprocess.Popen(
            words,
            cwd=home,
            env=kernel_env(home) | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        pytest.param(["no-such-verb"], marks=pytest.mark.slow),
        pytest.param(["list"], marks=pytest.mark.slow),
        ["list", "--notebook", "no.ipynb"],
    ],
)
def test_it_prints_and_ends_as_one_that_is_started(start, arguments):
    ends = []
    for words in (forked_command.list_words(), [sys.executable, "-m", "mcp_notebook"]):
        with start(*words, *arguments, MCP_NOTEBOOK_HOME="here") as process:
            ends.append((*process.communicate(timeout=TIMEOUT), process.returncode))
    assert ends[0] == ends[1]


def begin(process):
    """Wait until a bridge over stdio answers, and return the process that it is."""
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    process.stdin.flush()
    assert b'"id":1' in process.stdout.readline()
    pid = forked_command.find_pid(process.pid)
    assert pid != process.pid
    return psutil.Process(pid)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_gets_signals(start, number, status):
    with start(*forked_command.list_words("stdio")) as process:
        begin(process)
        process.send_signal(number)
        assert process.wait(TIMEOUT) == status


def test_one_that_is_killed_ends_and_ends_what_a_test_has_started(start):
    with start(*forked_command.list_words("stdio")) as process:
        begin(process).kill()
        assert process.wait(TIMEOUT) == -signal.SIGKILL


def test_one_that_a_test_kills_ends(start):
    with start(*forked_command.list_words("stdio")) as process:
        command = begin(process)
        process.kill()
        command.wait(TIMEOUT)


def test_it_has_the_pipes_to_itself(start):
    with start(*forked_command.list_words("stdio")) as process:
        begin(process)
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(TIMEOUT) == 0


def test_the_server_outlives_whom_it_serves(start):
    with start(*forked_command.list_words("stdio")) as process:
        command = begin(process)
        server = command.parent()
        # Both end before the server looks, so nobody is there whom it could tell.
        server.suspend()
        try:
            command.kill()
            process.kill()
            process.wait(TIMEOUT)
        finally:
            server.resume()
    with socket.socket(socket.AF_UNIX) as gone:
        gone.connect(forked_command.list_words()[4])
    with start(*forked_command.list_words("--version")) as process:
        process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0
    assert server.is_running()
