import os
import socket
import subprocess
import sys
from contextlib import aclosing

import anyio
import pytest

from mcp_notebook import discovery
from mcp_notebook.discovery import BridgeRecord, Record


def make_record(**changed):
    pid = changed.get("pid", os.getpid())
    values = {
        "id": discovery.make_id(),
        "pid": pid,
        "started": discovery.read_start_time(pid) or 0.0,
        "host": socket.gethostname(),
        "version": "1.0",
        "protocol": 1,
        "name": "sales",
    }
    return Record(**(values | changed))


@pytest.fixture
def dead():
    """The pid and start of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = discovery.read_start_time(process.pid)
    process.communicate()
    return {"pid": process.pid, "started": started}


def test_a_written_record_is_found_and_a_removed_one_is_not(tmp_path):
    record = make_record()
    discovery.write_record(tmp_path, record)
    assert discovery.list_live_records(tmp_path) == (record,)
    discovery.remove_record(tmp_path, record.id)
    discovery.remove_record(tmp_path, record.id)
    assert discovery.list_live_records(tmp_path) == ()


def test_a_folder_that_does_not_exist_holds_no_records(tmp_path):
    assert discovery.list_live_records(tmp_path / "none") == ()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_records_and_their_folder_are_the_users_alone(tmp_path):
    folder = tmp_path / "home" / "kernels"
    path = discovery.write_record(folder, make_record())
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_a_folder_that_others_could_enter_is_closed_to_them(tmp_path):
    tmp_path.chmod(0o755)
    discovery.make_private_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_failed_write_leaves_no_file_behind(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        discovery.write_private(tmp_path / "a.json", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_records_come_oldest_first(tmp_path):
    now = discovery.read_start_time(os.getpid())
    records = [make_record(id=name, started=now + later) for name, later in [("b", 2), ("a", 1)]]
    for record in records:
        discovery.write_record(tmp_path, record)
    assert [record.id for record in discovery.list_live_records(tmp_path)] == ["a", "b"]


def test_the_record_and_socket_of_a_dead_process_are_pruned(tmp_path, dead):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
    path = discovery.write_record(tmp_path, make_record(**dead, socket=str(tmp_path / "s")))
    assert discovery.list_live_records(tmp_path) == ()
    assert not path.exists()
    assert not (tmp_path / "s").exists()


def test_pruning_never_deletes_what_is_no_socket(tmp_path, dead):
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    discovery.write_record(tmp_path, make_record(**dead, socket=str(thesis)))
    assert discovery.list_live_records(tmp_path) == ()
    assert thesis.exists()


def test_another_process_with_the_same_pid_is_not_the_kernel(tmp_path):
    record = make_record(started=discovery.read_start_time(os.getpid()) - 3600)
    assert not discovery.is_alive(record)


def test_a_clock_that_was_set_does_not_make_a_kernel_dead():
    record = make_record(started=discovery.read_start_time(os.getpid()) + 3)
    assert discovery.is_alive(record)


def test_a_zombie_is_dead():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert discovery.read_start_time(process.pid) is None
    finally:
        process.wait()


def test_records_of_other_machines_are_neither_used_nor_pruned(tmp_path, dead):
    path = discovery.write_record(tmp_path, make_record(**dead, host="elsewhere"))
    assert discovery.list_live_records(tmp_path) == ()
    assert path.exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", "\x00", '{"id": 1}'])
def test_a_file_that_is_no_record_is_left_alone(tmp_path, text):
    record = make_record()
    discovery.write_record(tmp_path, record)
    path = tmp_path / "strange.json"
    path.write_text(text)
    assert discovery.list_live_records(tmp_path) == (record,)
    assert path.exists()


def test_members_of_a_newer_version_are_ignored(tmp_path):
    record = make_record()
    path = discovery.write_record(tmp_path, record)
    path.write_text(path.read_text().replace("{", '{"colour": "green",', 1))
    assert discovery.list_live_records(tmp_path) == (record,)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs root to give a file away"
)
def test_a_record_of_another_user_is_left_alone(tmp_path):
    path = discovery.write_record(tmp_path, make_record())
    os.chown(path, 12345, 12345)
    assert discovery.list_live_records(tmp_path) == ()
    assert path.exists()


def test_the_bridges_record_is_read_only_while_it_lives(tmp_path, dead):
    path = tmp_path / "bridge.json"
    assert discovery.read_bridge(path) is None
    pid = os.getpid()
    alive = BridgeRecord(
        pid=pid, started=discovery.read_start_time(pid), version="1", url="http://127.0.0.1:1/mcp"
    )
    discovery.write_private(path, alive.model_dump_json())
    assert discovery.read_bridge(path) == alive
    discovery.write_private(path, alive.model_copy(update=dead).model_dump_json())
    assert discovery.read_bridge(path) is None


@pytest.mark.anyio
async def test_watching_yields_the_records_now_and_after_each_change(tmp_path):
    folder = tmp_path / "kernels"
    first, second = make_record(id="1"), make_record(id="2")
    discovery.write_record(folder, first)
    with anyio.fail_after(20):
        async with aclosing(discovery.watch_records(folder)) as sets:
            assert await anext(sets) == (first,)
            discovery.write_record(folder, second)
            while (records := await anext(sets)) != (first, second):
                assert records == (first,)
            discovery.remove_record(folder, first.id)
            while (records := await anext(sets)) != (second,):
                assert records == (first, second)
