"""``mcp-notebook audit``, as a command that people and programs read."""

import json
import os
import re
import socket
import time

import pytest
from bridges import bridge
from call_reports import end_of, start_of
from live import until
from typer.testing import CliRunner

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, name_file
from mcp_notebook.bridge.telemetry.audit_log import write_audit_log
from mcp_notebook.bridge.telemetry.audit_records import encode
from mcp_notebook.bridge.telemetry.call_events import CallRefusal
from mcp_notebook.cli import main
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def settings(home):
    return Settings(home=home, audit="full")


@pytest.fixture
def show(settings):
    """Run the command in this process, and return what it prints on both outputs."""

    def run(*arguments):
        answer = CliRunner().invoke(
            main.app, ["audit", *arguments], env={"MCP_NOTEBOOK_HOME": str(settings.home)}
        )
        return answer.stdout.splitlines(), answer.stderr.splitlines()

    return run


def _write(settings, *ends):
    with write_audit_log(settings) as log:
        for end in ends:
            log.note_start(end.start)
            log.note_end(end)


def _ended(number, outcome="ok", **members):
    error = members.pop("error", None)
    return end_of(start_of(number, **members), outcome, error=error)


def _append(settings, *records):
    with AuditFile(settings.audit_path, max_bytes=10**6).open() as append:
        append([encode(record) for record in records])


@pytest.mark.smoke
def test_a_call_is_a_line_that_people_can_read(settings, show):
    _write(settings, _ended(1), _ended(2, "error", error="ValueError: no orders\nin 2031"))
    with write_audit_log(settings) as log:
        log.note_refusal(CallRefusal(at=0, caller="bob", client="", tool="x", reason="Too many."))
        log.note_refusal(
            CallRefusal(at=0, caller="b", client="", tool="p", tool_kind="prompt", reason="No.")
        )
    (good, bad, refused, prompt), notes = show()
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start_of().at))
    who = "owner (claude-code 2.0)  sales.top"
    assert good == f'{when} ok           250 ms  {who}  {{"n": 1, "region": "EU"}}'
    assert bad.startswith(f"{when} error        250 ms  {who}  ")
    assert bad.endswith("  ValueError: no orders in 2031")
    assert refused.endswith(" refused              bob  x  Too many.")
    assert prompt.endswith("  b  p [prompt]  No.")
    assert notes == []


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], [1, 2, 3, 4]),
        (["--tool", "top"], [1, 2, 3]),
        (["--tool", "sales.*"], [1, 2, 4]),
        (["--caller", "bob"], [2]),
        (["--failed"], [3, 4]),
        (["--since", "1h"], [4]),
        (["--since", "2023-12-01"], [4]),
        (["--since", "2023-11-01", "--caller", "o*", "--tool", "t?p", "--failed"], [3]),
    ],
)
def test_options_choose_calls(settings, show, options, ids):
    _write(
        settings,
        _ended(1),
        _ended(2, caller="bob"),
        _ended(3, "cancelled", notebook="weather"),
        _ended(4, "lost", tool="all", at=time.time()),
    )
    lines, _ = show("--json", *options)
    assert [json.loads(line)["id"] for line in lines] == [f"a1b2-{number}" for number in ids]


def test_calls_that_run_come_last(settings, show):
    with write_audit_log(settings) as log:
        log.note_start(start_of(1, at=time.time()))
        log.note_start(start_of(2, at=time.time()))
        log.note_end(end_of(start_of(2)))
        lines = until(lambda: len(lines := show()[0]) == 2 and lines)
        assert re.search(r"running +\d+ ms  owner .* sales.top", lines[1])
        assert json.loads(show("--json")[0][1])["outcome"] == "running"
        assert len(show("--since", "1h")[0]) == 2
        assert show("--failed")[0] == []
        log.note_end(end_of(start_of(1)))


def test_what_clients_chose_cannot_mislead_the_reader_or_the_terminal(settings, show):
    bad = "a\x1b[31m\x9b2J\u202eb\r\n2026-01-01 ok\ud800"
    _write(settings, _ended(1, "error", client=bad, tool=bad, arguments={bad: bad}, error=bad))
    for options in ([], ["--json"]):
        (line,), _ = show(*options)
        assert line.isprintable()
        assert "\\u202e" in line


def test_damaged_lines_are_skipped_with_a_note_and_odd_ones_are_shown(settings, show):
    name_file(settings.audit_path, "2023-11").write_bytes(
        b'{"time":\n{}\n{"time":7,"kind":[],"seconds":"x","tool":null}\n'
    )
    lines, notes = show()
    assert len(lines) == 2
    assert notes == ["Skipped 1 damaged line."]


def test_without_a_log_the_command_says_when_it_begins(settings, show):
    lines, notes = show()
    assert lines == []
    assert notes[0].startswith("There is no audit log yet.")
    assert f"creates it, in {settings.home}." in notes[0]


def test_people_see_an_error_without_its_traceback_and_on_one_line(settings, show):
    error = "ValueError: no  \n  orders\nTraceback (most recent call last):\n  Cell In[4], line 5"
    _write(settings, _ended(1, "error", error=error))
    assert show()[0][0].endswith("  ValueError: no orders")
    assert json.loads(show("--json")[0][0])["error"] == error


def test_refused_requests_are_shown_unless_calls_are_chosen(settings, show):
    with write_audit_log(settings) as log:
        log.note_request("127.0.0.1 port 7", "the bearer token is wrong", 1)
        log.note_request("several addresses", "too many", 1_234)
    one, more = show("--failed", "--since", "1h")[0]
    assert one.endswith("refused   a request from 127.0.0.1 port 7: the bearer token is wrong")
    assert more.endswith("refused   1234 requests from several addresses: too many")
    assert show("--caller", "owner")[0] == []


def test_a_file_other_than_a_log_is_an_error_that_says_so(home):
    (home / ".mcp-notebook").mkdir()
    os.mkfifo(home / ".mcp-notebook" / "audit-2026-11.jsonl")
    with bridge(home, "audit") as running:
        assert running.wait() == 1
        assert "audit.jsonl cannot be read: " in running.said
        assert "is not a regular file" in running.said


def test_a_call_whose_bridge_is_gone_is_lost_and_on_another_machine_it_runs(settings, show):
    start = {"time": "2026-01-01T00:00:00Z", "kind": "start", "caller": "owner"}
    here, gone = socket.gethostname(), 2**22 + 1  # no system has such a process
    bridges = [
        {"host": here, "pid": gone, "started": 1.0},
        {"host": here, "pid": os.getpid(), "started": 1.0},  # the number has been used again
        {"host": f"{here}2", "pid": gone, "started": 1.0},
        {"host": here, "pid": "x"},
    ]
    _append(settings, *(start | {"id": f"{n}", "bridge": b} for n, b in enumerate(bridges)))
    calls = [json.loads(line) for line in show("--json")[0]]
    outcomes = {call["id"]: call["outcome"] for call in calls}
    assert outcomes == {"0": "lost", "1": "lost", "2": "running", "3": "lost"}
    assert "killed" in calls[0]["error"]
