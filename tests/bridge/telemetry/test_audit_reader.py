"""Reading the audit log while bridges write and rotate it."""

import json
import os
import subprocess
import sys
from collections import deque

import pytest

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, AuditReader, name_old_file

WRITER = """
import sys
from collections import deque
from pathlib import Path
from mcp_notebook.bridge.telemetry.audit_file import AuditFile

file = AuditFile(Path(sys.argv[1]), max_bytes=100, old_files=200)
for number in range(300):
    with file.lock():
        file.append(deque([b'{"number":%d}\\n' % number]))
"""


@pytest.fixture
def file(tmp_path):
    return AuditFile(tmp_path / "audit.jsonl", max_bytes=50, old_files=3)


@pytest.fixture
def reader(file):
    reader = AuditReader(file.path)
    yield reader
    reader.close()


def _append(file, *numbers):
    with file.lock():
        file.append(deque(b'{"number":%d}\n' % number for number in numbers))


def _read(reader):
    return [record["number"] for record in reader.read()]


def test_old_files_come_first_and_nothing_is_read_twice(file, reader):
    assert _read(reader) == []
    _append(file, *range(9))
    assert name_old_file(file.path, 2).exists()
    assert _read(reader) == list(range(9))
    assert _read(reader) == []


def test_what_is_added_is_read_across_rotations(file, reader):
    seen = []
    for number in range(50):
        _append(file, number)
        seen += _read(reader)
    assert seen == list(range(50))
    assert not reader.has_gap
    assert reader.damaged == 0


def test_that_old_files_went_before_they_were_read_is_known(file, reader):
    _append(file, 0)
    assert _read(reader) == [0]
    _append(file, *range(1, 50))
    assert _read(reader)[-1] == 49
    assert reader.has_gap


def test_damaged_lines_are_skipped_and_counted(file, reader):
    file.path.write_bytes(
        b'{"number":1}\n{"numb\n\n[1]\n\xff\0\n' + b"[" * 10**5 + b'\n{"number":2}\n'
    )
    assert _read(reader) == [1, 2]
    assert reader.damaged == 5


def test_a_line_is_read_once_it_is_whole(file, reader):
    file.path.write_bytes(b'{"num')
    assert _read(reader) == []
    with file.path.open("ab") as other:
        other.write(b'ber":1}\n')
    assert _read(reader) == [1]
    assert reader.damaged == 0


def test_a_file_without_line_breaks_takes_no_memory(file, reader):
    with file.path.open("wb") as sparse:
        sparse.truncate(2**24)
        sparse.seek(2**24)
        sparse.write(b'\n{"number":1}\n')
    assert _read(reader) == [1]
    assert reader.damaged == 1
    assert len(reader._rest) == 0


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_only_regular_files_are_accepted_and_nothing_is_waited_for(file, reader, kind):
    if kind == "fifo":
        os.mkfifo(file.path)
    else:
        file.path.symlink_to("elsewhere")
    with pytest.raises(OSError):  # noqa: PT011 - the command explains it
        _read(reader)


def test_each_line_is_read_once_while_another_process_writes_and_rotates(tmp_path):
    path = tmp_path / "audit.jsonl"
    reader, seen = AuditReader(path), []
    with subprocess.Popen([sys.executable, "-c", WRITER, path]) as writer:
        while writer.poll() is None:
            seen += _read(reader)
    seen += _read(reader)
    reader.close()
    assert seen == list(range(300))
    assert not reader.has_gap
    assert json.loads(path.read_bytes().splitlines()[-1])["number"] == 299
