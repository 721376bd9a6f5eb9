"""The audit log's file: whole lines, of all processes that write to it, in files of a size."""

import json
import os
import resource
import subprocess
import sys
import threading
from collections import deque

import pytest
from bridges import NEEDS_TWO_USERS

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, name_old_file

LINE = b'{"number":%d}\n'
WRITER = """
import sys
from collections import deque
from pathlib import Path
from mcp_notebook.bridge.telemetry.audit_file import AuditFile

file = AuditFile(Path(sys.argv[1]), max_bytes=4096, old_files=100)
first = int(sys.argv[2])
print(flush=True)
sys.stdin.readline()
for number in range(first, first + 2000, 4):
    with file.lock():
        file.append(deque(b'{"number":%d}\\n' % n for n in range(number, number + 4)))
"""


def _file(folder, max_bytes=10**6, old_files=3):
    return AuditFile(folder / "audit.jsonl", max_bytes=max_bytes, old_files=old_files)


def _append(file, *lines):
    with file.lock():
        file.append(deque(lines))


def _numbers(path):
    return [json.loads(line)["number"] for line in path.read_bytes().splitlines()]


def test_lines_are_appended_to_a_file_that_only_the_user_can_read(tmp_path):
    file = _file(tmp_path / "new")
    _append(file, LINE % 1)
    file.path.chmod(0o644)
    _append(file, LINE % 2, LINE % 3)
    assert _numbers(file.path) == [1, 2, 3]
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_would_grow_too_large_becomes_an_old_one_and_the_oldest_goes(tmp_path):
    file = _file(tmp_path, max_bytes=2 * len(LINE % 1), old_files=2)
    _append(file, *(LINE % number for number in range(9)))
    files = [name_old_file(file.path, number) for number in range(3)]
    assert [_numbers(path) for path in files] == [[8], [6, 7], [4, 5]]
    assert sorted(tmp_path.iterdir()) == sorted([*files, tmp_path / "audit.jsonl.lock"])


def test_a_line_that_is_larger_than_a_file_has_one_of_its_own(tmp_path):
    file = _file(tmp_path, max_bytes=10)
    _append(file, LINE % 1, LINE % 2)
    assert _numbers(file.path) == [2]
    assert _numbers(name_old_file(file.path, 1)) == [1]


def test_after_half_a_line_of_a_killed_bridge_the_next_one_is_whole(tmp_path):
    file = _file(tmp_path)
    file.path.write_bytes(b'{"numb')
    _append(file, LINE % 1)
    assert file.path.read_bytes() == b'{"numb\n' + LINE % 1


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "dangling link", "device"])
def test_only_regular_files_are_accepted_and_nothing_is_waited_for(tmp_path, kind):
    file = _file(tmp_path)
    match kind:
        case "fifo":
            os.mkfifo(file.path)
        case "folder":
            file.path.mkdir()
        case "link":
            (tmp_path / "other").touch()
            file.path.symlink_to("other")
        case "dangling link":
            file.path.symlink_to("nowhere")
        case "device":
            file = AuditFile(tmp_path / "null", max_bytes=1, old_files=1)
            try:
                os.mknod(file.path, 0o600 | 0o020000, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("only root can make a device")
    lines = deque([LINE % 1])
    with pytest.raises(OSError), file.lock():  # noqa: PT011 - the thread explains it
        file.append(lines)
    assert list(lines) == [LINE % 1]
    assert not (tmp_path / "nowhere").exists()


@NEEDS_TWO_USERS
def test_a_file_of_another_user_is_refused(tmp_path):
    file = _file(tmp_path)
    file.path.touch()
    os.chown(file.path, 65534, 65534)
    with pytest.raises(PermissionError, match="belongs to another user"):
        _append(file, LINE % 1)
    assert file.path.read_bytes() == b""


def test_on_a_full_disk_no_half_a_line_is_left_and_none_is_taken_for_written(tmp_path):
    file = _file(tmp_path)
    _append(file, LINE % 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    lines = deque([LINE % 2, LINE % 3])
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINE % 1) + 5, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"), file.lock():
            file.append(lines)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert _numbers(file.path) == [1]
    with file.lock():
        file.append(lines)
    assert _numbers(file.path) == [1, 2, 3]


def test_the_lock_is_waited_for_but_not_forever(tmp_path, monkeypatch):
    file, other = _file(tmp_path), _file(tmp_path)
    with file.lock():
        waiter = threading.Thread(target=_append, args=(other, LINE % 2))
        waiter.start()
        file.append(deque([LINE % 1]))
    waiter.join()
    assert _numbers(file.path) == [1, 2]
    monkeypatch.setattr("mcp_notebook.bridge.telemetry.audit_file.LOCK_TIMEOUT", 0.01)
    with file.lock(), pytest.raises(TimeoutError, match="another process"):
        _append(other, LINE % 3)


def test_processes_that_write_and_rotate_at_once_lose_and_repeat_no_line(tmp_path):
    path = tmp_path / "audit.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for first in (0, 2000, 4000)
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"\n"
    for writer in writers:
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    files = [*tmp_path.glob("audit.jsonl.[0-9]*"), path]
    assert all(file.stat().st_size <= 4096 for file in files)
    assert sorted(number for file in files for number in _numbers(file)) == list(range(6000))
