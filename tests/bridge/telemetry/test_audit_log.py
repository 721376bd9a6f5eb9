"""The audit log of real bridges: every call of a client, whatever happens to bridge and disk."""

import json
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from audit_lines import read_audit, read_ends
from bridges import COMMAND, INITIALIZE, ask, bridge, http_bridge
from call_reports import end_of, start_of
from held_items import count_items
from live import TIMEOUT, live_kernel, until
from typer.testing import CliRunner

from mcp_notebook.bridge.telemetry.audit_file import list_files
from mcp_notebook.bridge.telemetry.audit_log import write_audit_log
from mcp_notebook.cli import main
from mcp_notebook.settings.settings import Settings

TOOLS = """%%mcp_tool
import asyncio

def add(a: int, b: int = 1) -> int:
    "Add."
    return a + b

def fail(why: str):
    "Fail."
    raise ValueError(why)

async def forever():
    "Never ends."
    await asyncio.sleep(600)
"""
SLOW = (
    '%%mcp_tool --timeout 0.01s\nasync def slow():\n    "Too slow."\n    await asyncio.sleep(600)'
)


@pytest.fixture(scope="module")
def sales(module_home):
    """A live notebook with tools."""
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOLS)
        kernel.ok(SLOW)
        yield kernel


@pytest.fixture
def log(sales):
    """The log of the notebook's bridges, without lines of earlier tests."""
    path = sales.home / ".mcp-notebook" / "audit.jsonl"
    for file in list_files(path).values():
        file.unlink()
    return path


@contextmanager
def _client(kernel, command=None, **env):
    """Run a stdio bridge with a client that has said hello."""
    options = {"stdin": subprocess.PIPE, "env": env, "command": command}
    with bridge(kernel.home, "stdio", **options) as running:
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["id"] == "hello"
        running.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        running.send(b'{"jsonrpc":"2.0","id":"tools","method":"tools/list"}')
        _wait_for_answer(running, "tools")
        yield running
        running.process.stdin.close()
        assert running.wait() in (0, -signal.SIGKILL)


def _send_call(running, number, tool, arguments):
    params = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    running.send(json.dumps(request).encode())


def _wait_for_answer(running, number):
    while (message := running.message()).get("id") != number:
        pass
    return message


def _call(running, number, tool, arguments):
    _send_call(running, number, tool, arguments)
    return _wait_for_answer(running, number)


def _wait_for_start(log, number):
    """Wait until so many calls have begun."""
    until(lambda: [record["kind"] for record in read_audit(log)].count("start") == number)


def _shown(log):
    """Return the calls that the command shows."""
    env = {"MCP_NOTEBOOK_HOME": str(log.parent)}
    answer = CliRunner().invoke(main.app, ["audit", "--json"], env=env)
    return [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.mark.smoke
def test_each_call_of_a_client_has_a_line_at_its_start_and_one_at_its_end(sales, log):
    with _client(sales, MCP_NOTEBOOK_AUDIT="full") as running:
        _call(running, 1, "add", {"a": 1})
        _call(running, 2, "fail", {"why": "no reason"})
        _call(running, 3, "slow", {})
        _call(running, 4, "ad", {})
        _send_call(running, 5, "forever", {})
        _wait_for_start(log, 4)
        notice = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 5},
        }
        running.send(json.dumps(notice).encode())
        until(lambda: len(read_ends(log)) == 5)
        _send_call(running, 6, "forever", {})
        _wait_for_start(log, 5)
    added, failed, slow, unknown, cancelled, left = read_ends(log)
    first = read_audit(log)[0]
    assert first == {"kind": "start"} | {name: added[name] for name in first if name != "kind"}
    assert added["bridge"].keys() == {"host", "pid", "started"}
    assert added["arguments"] == {"a": 1}
    assert (added["caller"], added["client"]) == ("stdio", "test 1")
    assert (added["notebook"], added["tool"], added["outcome"]) == ("sales", "add", "ok")
    assert all(0 <= added[f"{name}seconds"] < TIMEOUT for name in ("", "queue_", "run_"))
    assert added["result_size"] == 1
    assert failed["outcome"] == "error"
    assert "no reason" in failed["error"]
    assert (slow["tool"], slow["outcome"]) == ("slow", "timed out")
    assert (unknown["tool"], unknown["outcome"]) == ("ad", "refused")
    assert "Unknown tool" in unknown["error"]
    assert (cancelled["tool"], cancelled["outcome"]) == ("forever", "cancelled")
    assert (left["tool"], left["outcome"]) == ("forever", "cancelled")


def test_a_line_says_that_a_prompt_was_got_or_a_resource_was_read(sales, log):
    sales.ok("%%mcp_prompt report(year: int)\nOn {year}.")
    sales.ok("%%mcp_resource data://{name}\nname")
    with _client(sales, MCP_NOTEBOOK_AUDIT="full") as running:
        _call(running, 1, "add", {"a": 1})
        for number, (method, params) in enumerate(
            (
                ("prompts/get", {"name": "report", "arguments": {"year": "2026"}}),
                ("prompts/get", {"name": "repot", "arguments": {}}),
                ("resources/read", {"uri": "data://x"}),
            ),
            2,
        ):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            running.send(json.dumps(request).encode())
            _wait_for_answer(running, number)
    lines = read_ends(log)
    assert [(line["tool"], line.get("tool_kind"), line["outcome"]) for line in lines] == [
        ("add", None, "ok"),
        ("report", "prompt", "ok"),
        ("repot", "prompt", "refused"),
        ("data_name", "resource", "ok"),
    ]
    assert [line.get("arguments") for line in lines[1:]] == [{"year": "2026"}, None, {"name": "x"}]


def test_a_call_whose_file_is_refused_has_failed(sales, log, tmp_path):
    outside = tmp_path / "secret.txt"
    outside.write_text("hunter2")
    sales.ok(
        f"%%mcp_tool\nimport pathlib\nsecret = pathlib.Path({str(outside)!r})\n"
        "def one() -> pathlib.Path:\n    'One.'\n    return secret\n"
        "def more() -> list:\n    'More.'\n    return ['seen', secret]"
    )
    with _client(sales) as running:
        for number, tool in enumerate(("one", "more")):
            assert _call(running, number, tool, {})["result"]["isError"]
    one, more = read_ends(log)
    assert (one["tool"], one["outcome"]) == ("one", "error")
    assert f"The file {outside} is not shared: it is outside" in one["error"]
    assert (more["tool"], more["outcome"]) == ("more", "error")
    assert "hunter2" not in str(read_audit(log))


def test_without_a_setting_the_log_is_in_the_home_folder_and_has_hashes(tmp_path):
    with write_audit_log(Settings(home=tmp_path)) as log:
        log.note_start(start_of(arguments={"name": "Miller"}))
        log.note_end(end_of(start_of()))
    (line,) = read_ends(tmp_path / "audit.jsonl")
    assert len(line["arguments_sha256"]) == 64
    assert "Miller" not in json.dumps(line)


def test_a_log_that_is_turned_off_is_not_written(tmp_path):
    with write_audit_log(Settings(home=tmp_path, audit="off")) as log:
        log.note_start(start_of(1))
        log.note_end(end_of(start_of(1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_call_that_ran_when_its_bridge_was_killed_is_not_forgotten(sales, log):
    with _client(sales, COMMAND) as running:
        _call(running, 1, "add", {"a": 1})
        _send_call(running, 2, "forever", {})
        _wait_for_start(log, 2)
        outcomes = [call["outcome"] for call in _shown(log)]
        assert outcomes == ["ok", "running"]
        running.end(signal.SIGKILL)
    with _client(sales) as running:
        _call(running, 1, "add", {"a": 2})
    added, forever, again = _shown(log)
    assert (added["tool"], added["outcome"]) == ("add", "ok")
    assert (forever["tool"], forever["outcome"]) == ("forever", "lost")
    assert "killed" in forever["error"]
    assert (again["tool"], again["outcome"]) == ("add", "ok")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
def test_a_full_disk_is_told_once_and_loses_no_call(sales, log):
    with _client(sales, COMMAND) as running:
        _call(running, 0, "add", {"a": 0})
        until(lambda: read_ends(log))
        (file,) = list_files(log).values()
        pid, size = running.process.pid, file.stat().st_size
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 100, before[1]))
        for number in range(1, 20):
            assert _call(running, number, "add", {"a": number})["result"]["isError"] is False
        running.wait_said("cannot be written: .*File too large")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        running.wait_said("is written again; no line is missing")
    assert running.said.count("cannot be written") == 1
    assert [call["outcome"] for call in _shown(log)] == ["ok"] * 20


def test_calls_that_are_written_leave_nothing_in_memory(tmp_path):
    held, schema = [], {"type": "object"}
    with write_audit_log(Settings(home=tmp_path)) as log:
        for number in range(300):
            start = start_of(number, arguments={"a": number}, input_schema=schema)
            log.note_start(start)
            log.note_end(end_of(start))
            if number in (99, 299):
                until(lambda: not log._writer._queue)
                held.append(count_items(log))
    assert held[0] == held[1]


def test_a_refused_request_has_a_line_without_its_token(home):
    log = home / ".mcp-notebook" / "audit.jsonl"
    with http_bridge(home) as running:
        assert ask(running.url, headers={"Authorization": "Bearer hunter2"}).status == 401
        until(lambda: read_ends(log))
    (line,) = read_ends(log)
    assert (line["kind"], line["outcome"]) == ("request", "refused")
    assert line["address"].startswith("127.0.0.1 port ")
    assert "token" in line["error"]
    assert "hunter2" not in json.dumps(line)
