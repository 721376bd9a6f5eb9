"""The audit log's thread: nothing that happens to the disk stops or loses a call unsaid."""

import json
import os
import threading
from contextlib import contextmanager

import pytest
from live import TIMEOUT

from mcp_notebook.bridge.telemetry import audit_log
from mcp_notebook.bridge.telemetry.audit_file import AuditFile, CallJournal, find_journals
from mcp_notebook.bridge.telemetry.audit_log import AuditItem, AuditWriter


@pytest.fixture
def file(tmp_path):
    return AuditFile(tmp_path / "audit.jsonl", max_bytes=10**6, old_files=2)


class WatchedWriter(AuditWriter):
    """A writer that says when it has written what it had."""

    def __init__(self, file):
        super().__init__(file)
        self._rounds = threading.Condition()

    def _wait(self):
        with self._rounds:
            self._rounds.notify_all()
        super()._wait()

    def wait_until(self, condition):
        with self._rounds:
            assert self._rounds.wait_for(condition, TIMEOUT)


@contextmanager
def writing(file):
    writer = WatchedWriter(file)
    writer.start()
    try:
        yield writer
    finally:
        writer.close()


def _record(number, outcome="running"):
    return {"time": "then", "kind": "call", "id": f"a-{number}", "outcome": outcome}


def _start(number):
    return AuditItem(lambda: _record(number), call_id=f"a-{number}", is_running=True, weight=100)


def _end(number):
    return AuditItem(lambda: _record(number, "ok"), call_id=f"a-{number}", weight=100)


def _lines(file):
    return [json.loads(line) for line in file.path.read_bytes().splitlines()]


def _ids(file):
    return [line["id"] for line in _lines(file)]


def test_a_call_has_one_line_once_it_has_ended_and_is_in_the_journal_before(file):
    with writing(file) as writer:
        writer.put(_start(1))
        writer.wait_until(lambda: any(journal.calls for journal in find_journals(file.path)))
        assert _lines(file) == []
        writer.put(_end(1))
        writer.wait_until(lambda: [journal.calls for journal in find_journals(file.path)] == [()])
    assert _lines(file) == [_record(1, "ok")]
    assert {path.name for path in file.path.parent.iterdir()} == {"audit.jsonl", "audit.jsonl.lock"}


def test_what_cannot_be_written_is_kept_and_that_is_said_once_and_its_end_too(
    file, caplog, monkeypatch
):
    monkeypatch.setattr(audit_log, "RETRY_INTERVAL", 0.01)
    file.path.mkdir()
    with writing(file) as writer:
        for number in range(100):
            writer.put(_start(number))
            writer.put(_end(number))
            if number % 10 == 0:
                writer.wait_until(lambda: writer._received == writer._put)
        (told,) = caplog.messages
        assert told.startswith(f"The audit log {file.path} cannot be written: ")
        assert "Is a directory" in told
        file.path.rmdir()
        writer.wait_until(lambda: len(caplog.messages) == 2)
        assert caplog.messages[1].endswith("is written again; no call is missing.")
    assert _ids(file) == [f"a-{number}" for number in range(100)]
    assert len(caplog.messages) == 2


def test_a_link_in_the_place_of_the_log_is_named(file, caplog):
    file.path.symlink_to("elsewhere")
    with writing(file) as writer:
        writer.wait_until(lambda: caplog.messages)
    assert "audit.jsonl is a symbolic link" in caplog.messages[0]


def test_a_call_that_there_is_no_room_for_is_counted_aloud(file, caplog, monkeypatch):
    monkeypatch.setattr(audit_log, "MAX_KEPT", 10)
    monkeypatch.setattr(audit_log, "RETRY_INTERVAL", 0.01)
    with writing(file) as writer:
        writer.put(_start("early"))
        writer.wait_until(lambda: any(journal.calls for journal in find_journals(file.path)))
        with file.lock():  # as if the disk were hanging
            for number in range(30):
                writer.put(_start(number))
                writer.put(_end(number))
            writer.put(_end("early"))
            (told,) = caplog.messages
            assert told.endswith("from now on, it lacks calls.")
        writer.wait_until(lambda: writer._missing == writer._told_missing)
        assert [journal.calls for journal in find_journals(file.path)] == [()]
    gaps = [line["missing"] for line in _lines(file) if line["kind"] == "gap"]
    assert sum(gaps) == 31 - (len(_lines(file)) - len(gaps)) >= 20
    told = [f"is written again; it lacks {gap} calls." for gap in gaps]
    assert [message.partition(".jsonl ")[2] for message in caplog.messages[1:]] == told


def test_the_end_of_a_bridge_does_not_wait_for_a_disk_that_hangs(file, caplog, monkeypatch):
    monkeypatch.setattr(audit_log, "CLOSE_LIMIT", 0.01)
    with writing(file) as writer:
        writer.wait_until(file.path.exists)
        with file.lock():
            writer.put(_end(1))
            writer.close()
            assert "lacks the last lines, at most 1" in caplog.messages[0]
        writer._thread.join(TIMEOUT)
    assert _ids(file) == ["a-1"]


def test_what_a_killed_bridge_has_left_is_lost_but_what_it_had_written_is_not(file):
    left = CallJournal(file.path)
    lines = {f"a-{number}": audit_log.encode(_record(number)) for number in range(3)}
    left.update(lines, (), lines)
    os.close(left._descriptor)  # its lock goes as that of a killed process does
    with file.lock():
        file.append(audit_log.deque([audit_log.encode(_record(1, "ok"))]))
    with writing(file), writing(file):
        pass
    outcomes = {line["id"]: line["outcome"] for line in _lines(file)}
    assert outcomes == {"a-0": "lost", "a-1": "ok", "a-2": "lost"}
    assert len(_lines(file)) == 3
    assert "killed" in _lines(file)[1]["error"]
    assert not left.path.exists()
