"""The calls that a bridge has not ended, for whoever finds them after its sudden end."""

import json
import os
import signal
import subprocess
import sys

import pytest

from mcp_notebook.bridge.telemetry import audit_file
from mcp_notebook.bridge.telemetry.audit_file import CallJournal, find_journals

OWNER = """
import sys
from pathlib import Path
from mcp_notebook.bridge.telemetry.audit_file import CallJournal

journal = CallJournal(Path(sys.argv[1]))
line = b'{"id":"a-1"}\\n'
journal.update({"a-1": line}, (), {"a-1": line})
print(flush=True)
sys.stdin.read()
"""


def _line(number):
    return json.dumps({"id": f"a-{number}"}).encode() + b"\n"


def _calls(log):
    return [[call["id"] for call in journal.calls] for journal in find_journals(log)]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.jsonl"


def test_the_calls_that_have_not_ended_are_found(log):
    journal = CallJournal(log)
    lines = {f"a-{number}": _line(number) for number in range(3)}
    journal.update(lines, (), lines)
    journal.update({}, {"a-1"}, {name: lines[name] for name in ("a-0", "a-2")})
    assert _calls(log) == [["a-0", "a-2"]]
    assert journal.path.stat().st_mode & 0o777 == 0o600
    journal.close()
    assert list(log.parent.iterdir()) == []


def test_a_journal_is_left_behind_once_its_bridge_is_gone(log):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, log], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        owner.stdout.readline()
        (journal,) = find_journals(log)
        assert not journal.is_left_behind
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    (journal,) = find_journals(log)
    assert journal.is_left_behind
    assert [call["id"] for call in journal.calls] == ["a-1"]


def test_a_journal_stays_small_while_calls_come_and_go_without_a_pause(log, monkeypatch):
    monkeypatch.setattr(audit_file, "MAX_JOURNAL", 200)
    journal = CallJournal(log)
    running = {}
    for number in range(1000):
        name = f"a-{number}"
        running[name] = _line(number)
        journal.update({name: running[name]}, (), running)
        ended = f"a-{number - 2}"
        if running.pop(ended, None):
            journal.update({}, {ended}, running)
        assert journal.path.stat().st_size < 300
        assert _calls(log) == [list(running)]
    journal.close()


def test_an_incomplete_line_and_other_files_than_journals_are_skipped(log):
    name = f"{log.name}.running-"
    log.with_name(f"{name}1").write_bytes(_line(1) + b'[]\n"a-7"\n{"id":7}\n\xff\n{"id":"a-')
    log.with_name(f"{name}2").symlink_to(f"{name}1")
    os.mkfifo(log.with_name(f"{name}3"))
    log.with_name(f"{name}4").mkdir()
    assert _calls(log) == [["a-1"]]
