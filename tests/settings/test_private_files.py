import os
import sys

import psutil
import pytest

from mcp_notebook.settings import private_files
from mcp_notebook.settings.private_files import (
    MAX_SIZE,
    lock_file,
    lock_private,
    make_private_folder,
    read_private,
    write_private,
)


def test_a_folder_is_private_with_all_that_is_made_above_it(tmp_path):
    make_private_folder(tmp_path / "home" / "records")
    for folder in (tmp_path / "home", tmp_path / "home" / "records"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_what_was_written_is_read(tmp_path):
    write_private(tmp_path / "a", "ä")
    assert read_private(tmp_path / "a") == "ä".encode()


def test_a_failed_write_leaves_no_file_behind(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "a.json", "\ud800")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_a_folder_that_others_could_enter_is_closed_to_them(tmp_path):
    tmp_path.chmod(0o755)
    private_files.make_private_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_file_of_the_most_bytes_is_read_and_a_larger_one_is_not(tmp_path):
    write_private(tmp_path / "a", "x" * MAX_SIZE)
    assert len(read_private(tmp_path / "a")) == MAX_SIZE
    write_private(tmp_path / "a", "x" * (MAX_SIZE + 1))
    with pytest.raises(OSError, match="larger than 65,536 bytes"):
        read_private(tmp_path / "a")


def test_a_link_is_not_followed(tmp_path):
    write_private(tmp_path / "a", "x")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        read_private(tmp_path / "b")


@pytest.mark.skipif(sys.platform == "win32", reason="users")
def test_a_file_of_another_user_is_not_read(tmp_path, monkeypatch):
    write_private(tmp_path / "a", "x")
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    with pytest.raises(PermissionError, match="another user"):
        read_private(tmp_path / "a")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["a folder", "a pipe"])
def test_only_regular_files_are_read_and_nothing_is_left_open(tmp_path, make):
    make(tmp_path / "a")
    before = psutil.Process().num_fds()
    with pytest.raises(OSError, match="not a regular file"):
        read_private(tmp_path / "a")
    assert psutil.Process().num_fds() == before


def test_a_file_has_one_lock_which_goes_with_its_descriptor(tmp_path):
    first, second = (os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert lock_file(first)
    assert not lock_file(second)
    os.close(first)
    assert lock_file(second)
    os.close(second)


def test_one_at_a_time_is_behind_a_lock(tmp_path):
    with (
        lock_private(tmp_path / "lock"),
        pytest.raises(TimeoutError, match=r"another process has locked .*lock for 0 s"),
        lock_private(tmp_path / "lock", wait_limit=0),
    ):
        pass
    with lock_private(tmp_path / "lock"):
        pass
