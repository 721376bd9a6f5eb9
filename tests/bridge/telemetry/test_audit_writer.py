"""The audit log's thread: nothing that happens to the disk stops or loses a call unsaid."""

import threading
import time
from contextlib import contextmanager

import pytest
from audit_lines import read_audit
from live import TIMEOUT, until

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, name_file
from mcp_notebook.bridge.telemetry.audit_log import AuditWriter


class HangingFile(AuditFile):
    """A file on a disk that can hang."""

    def __init__(self, path):
        super().__init__(path, max_bytes=10**6)
        self._works = threading.Event()
        self._works.set()

    def open(self):
        assert self._works.wait(TIMEOUT)
        return super().open()

    @contextmanager
    def hang(self):
        self._works.clear()
        yield
        self._works.set()


@pytest.fixture
def file(tmp_path):
    return HangingFile(tmp_path / "audit.jsonl")


@pytest.fixture
def newest(file):
    return name_file(file.path, time.strftime("%Y-%m", time.gmtime()))


@contextmanager
def writing(file, **options):
    writer = AuditWriter(file, **options)
    writer.start()
    try:
        yield writer
    finally:
        writer.close()


def _put(writer, *numbers):
    for number in numbers:
        writer.put(lambda number=number: {"kind": "call", "id": number})


def _ids(file):
    return [line["id"] for line in read_audit(file.path) if line["kind"] == "call"]


def test_what_cannot_be_written_is_kept_and_that_is_said_once_and_its_end_too(file, newest, caplog):
    newest.mkdir()
    with writing(file, retry_interval=0.01) as writer:
        _put(writer, *range(300))
        until(lambda: caplog.messages)
        (told,) = caplog.messages
        assert told.startswith(f"The audit log {file.path} cannot be written: ")
        assert "Is a directory" in told
        newest.rmdir()
        until(lambda: len(caplog.messages) == 2)
        assert caplog.messages[1].endswith("is written again; no line is missing.")
    assert _ids(file) == list(range(300))
    assert len(caplog.messages) == 2


def test_a_link_in_the_place_of_the_log_is_named(file, newest, caplog):
    newest.symlink_to("elsewhere")
    with writing(file):
        until(lambda: caplog.messages)
    assert f"{newest.name} is a symbolic link" in caplog.messages[0]


def test_lines_that_there_is_no_room_for_are_counted_aloud(file, caplog):
    with writing(file, max_kept=10) as writer:
        with file.hang():
            _put(writer, *range(30))
            (told,) = caplog.messages
            assert told.endswith("from now on, it lacks lines.")
        until(lambda: len(caplog.messages) == 2)
    gaps = [line["missing"] for line in read_audit(file.path) if line["kind"] == "gap"]
    assert len(_ids(file)) + sum(gaps) == 30
    assert sum(gaps) >= 10
    assert caplog.messages[1].endswith(f"is written again; it lacks {gaps[0]} lines.")


def test_the_end_of_a_bridge_does_not_wait_for_a_disk_that_hangs(file, caplog):
    with writing(file, close_limit=0.01) as writer:
        _put(writer, 0)
        until(lambda: _ids(file) == [0])
        with file.hang():
            _put(writer, 1)
            writer.close()
            assert "lacks the last lines, at most 1" in caplog.messages[0]
        writer._thread.join(TIMEOUT)
    assert _ids(file) == [0, 1]


def test_while_the_disk_is_behind_calls_are_not_kept_but_their_lines(file):
    described = []
    with writing(file) as writer, file.hang():
        for number in range(1000):
            writer.put(lambda n=number: described.append(n) or {"kind": "call", "id": n})
        assert len(described) > 700
    assert sorted(_ids(file)) == list(range(1000))
