"""The audit log's files: whole lines of all processes that write to them, up to a size."""

import json
import os
import resource
import subprocess
import sys
import time

import pytest
from audit_lines import read_audit
from bridges import NEEDS_TWO_USERS

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, AuditReader, list_files, name_file

LINE = b'{"number":%d}\n'
WRITER = """
import sys
from pathlib import Path
from mcp_notebook.bridge.telemetry.audit_file import AuditFile

file = AuditFile(Path(sys.argv[1]), max_bytes=int(sys.argv[3]))
first = int(sys.argv[2])
print(flush=True)
sys.stdin.readline()
for number in range(first, first + 2000, 4):
    lines = [b'{"number":%d}\\n' % n for n in range(number, number + 4)]
    while lines:
        with file.open() as append:
            del lines[: append(lines)]
"""


@pytest.fixture
def file(tmp_path):
    return AuditFile(tmp_path / "audit.jsonl", max_bytes=10**6)


@pytest.fixture
def newest(file):
    """The path of the file that is written to."""
    return name_file(file.path, time.strftime("%Y-%m", time.gmtime()))


def _append(file, *numbers):
    for number in numbers:
        while True:
            with file.open() as append:
                if append([LINE % number]):
                    break


def _numbers(file):
    return [record["number"] for record in read_audit(file.path)]


def _read(reader):
    return [record["number"] for record in reader.read()]


def test_lines_are_appended_to_a_file_of_the_month_that_only_the_user_can_read(tmp_path):
    file = AuditFile(tmp_path / "new" / "audit.jsonl", max_bytes=10**6)
    _append(file, 1, 2)
    (path,) = (tmp_path / "new").iterdir()
    assert path.name == time.strftime("audit-%Y-%m.jsonl", time.gmtime())
    assert _numbers(file) == [1, 2]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_new_month_has_a_new_file_and_old_ones_go_once_all_are_too_large(tmp_path):
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=600)
    name_file(file.path, "2020-12").write_bytes(LINE % 0)
    name_file(file.path, "2021-01").write_bytes(LINE % 1)
    other = tmp_path / "audit-2021.jsonl"
    other.touch()
    _append(file, *range(2, 10))
    assert _numbers(file) == list(range(10))
    _append(file, *range(10, 90))
    files = [path for path in tmp_path.iterdir() if path != other]
    assert 400 < sum(path.stat().st_size for path in files) <= 600 + len(LINE % 10)
    assert all(path.stat().st_size < 100 + len(LINE % 10) for path in files)
    assert list(list_files(file.path)) == sorted(list_files(file.path))
    assert _numbers(file) == list(range(_numbers(file)[0], 90))
    assert other.exists()


def test_after_half_a_line_of_a_killed_bridge_the_next_one_is_whole(file, newest):
    newest.write_bytes(b'{"numb')
    _append(file, 1)
    assert newest.read_bytes() == b'{"numb\n' + LINE % 1


def test_on_a_full_disk_no_line_is_taken_for_written_and_the_next_is_whole(file):
    _append(file, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINE % 1) + 5, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            _append(file, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    _append(file, 2, 3)
    reader = AuditReader(file.path)
    assert _read(reader) == [1, 2, 3]
    assert reader.damaged == 1  # the half that was written twice


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "dangling link"])
def test_only_regular_files_are_accepted_and_nothing_is_waited_for(file, newest, kind):
    match kind:
        case "fifo":
            os.mkfifo(newest)
        case "folder":
            newest.mkdir()
        case "link":
            newest.with_name("other").touch()
            newest.symlink_to("other")
        case "dangling link":
            newest.symlink_to("nowhere")
    with pytest.raises(OSError):  # noqa: PT011 - the thread explains it
        _append(file, 1)
    with pytest.raises(OSError):  # noqa: PT011 - the command explains it
        _read(AuditReader(file.path))
    assert not newest.with_name("nowhere").exists()


@NEEDS_TWO_USERS
def test_a_file_of_another_user_is_refused(file, newest):
    newest.touch()
    os.chown(newest, 65534, 65534)
    with pytest.raises(OSError, match="belongs to another user"):
        _append(file, 1)
    assert newest.read_bytes() == b""


@pytest.mark.parametrize("max_bytes", [10**7, 24_000], ids=["one file", "many files"])
def test_processes_that_write_at_once_lose_and_tear_no_line(tmp_path, max_bytes):
    path = tmp_path / "audit.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(first), str(max_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for first in (10_000, 12_000, 14_000)
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"\n"
    for writer in writers:
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    reader = AuditReader(path)
    while any(writer.poll() is None for writer in writers):
        _read(reader)
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    seen = _read(reader)
    assert reader.damaged == 0
    assert len(set(seen)) == len(seen)
    if max_bytes == 10**7:
        assert sorted(seen) == list(range(10_000, 16_000))
    assert sum(file.stat().st_size for file in list_files(path).values()) <= max_bytes + 60


def test_damaged_lines_are_skipped_and_counted(file, newest):
    newest.write_bytes(
        b'{"number":1}\n{"numb\n\n[1]\n\xff\0\n' + b"[" * 10**5 + b'\n{"number":2}\n'
    )
    reader = AuditReader(file.path)
    assert _read(reader) == [1, 2]
    assert reader.damaged == 4  # an empty line is none


def test_a_line_is_read_when_it_is_whole(file, newest):
    reader = AuditReader(file.path)
    assert _read(reader) == []
    newest.write_bytes(b'{"num')
    assert _read(reader) == []
    with newest.open("ab") as other:
        other.write(b'ber":1}\n')
    assert _read(reader) == [1]
    assert reader.damaged == 0


def test_a_file_without_line_breaks_takes_no_memory(file, newest):
    with newest.open("wb") as sparse:
        sparse.truncate(2**24)
        sparse.seek(2**24)
        sparse.write(json.dumps({"number": 1}).encode().join((b"\n", b"\n")))
    reader = AuditReader(file.path)
    assert _read(reader) == [1]
    assert reader.damaged
