import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.discovery import records as discovery
from mcp_notebook.discovery.departures import list_departures
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import BridgeRecord, IgnoredFiles, Record
from mcp_notebook.errors import LinkError
from mcp_notebook.settings.private_files import MAX_SIZE, write_private, write_private_json


def make_record(**changed):
    pid = changed.get("pid", os.getpid())
    values = {
        "id": make_id(),
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


@pytest.mark.smoke
def test_a_written_record_is_found_and_a_removed_one_is_not(tmp_path):
    record = make_record()
    discovery.write_record(tmp_path, record)
    assert discovery.list_live_records(tmp_path) == (record,)
    discovery.remove_record(tmp_path, record.id)
    discovery.remove_record(tmp_path, record.id)
    assert discovery.list_live_records(tmp_path) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_records_and_their_folder_are_the_users_alone(tmp_path):
    folder = tmp_path / "home" / "kernels"
    path = discovery.write_record(folder, make_record())
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_records_come_oldest_first(tmp_path):
    now = discovery.read_start_time(os.getpid())
    records = [make_record(id=name, started=now + later) for name, later in [("b", 2), ("a", 1)]]
    for record in records:
        discovery.write_record(tmp_path, record)
    assert [record.id for record in discovery.list_live_records(tmp_path)] == ["a", "b"]


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return path


@pytest.fixture
def gone(tmp_path, dead):
    """Writes the record of a dead kernel that claims this path to be its socket."""

    def write(path, id_="gone"):
        return discovery.write_record(tmp_path, make_record(**dead, id=id_, socket=str(path)))

    return write


def test_the_record_and_socket_of_a_dead_process_are_pruned(home, gone):
    own = make_socket(home / "gone.sock")
    path = gone(own)
    assert discovery.list_live_records(path.parent) == ()
    assert not path.exists()
    assert not own.exists()


def test_pruning_deletes_only_sockets(tmp_path, gone):
    thesis = tmp_path / "gone.sock"
    thesis.write_text("years of work")
    assert discovery.list_live_records(gone(thesis).parent) == ()
    assert thesis.exists()


def test_pruning_never_deletes_the_socket_of_another_kernel_or_program(home, gone):
    others = [make_socket(home / name) for name in ("live.sock", "agent")]
    link = home / "gone.sock"
    link.symlink_to(others[0])
    for path in (*others, link):
        record = gone(path)
        assert discovery.list_live_records(record.parent) == ()
        assert not record.exists()
        assert path.exists()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs root to give a socket away"
)
def test_pruning_never_deletes_the_socket_of_another_user(home, gone):
    path = make_socket(home / "gone.sock")
    os.chown(path, 12345, 12345)
    discovery.list_live_records(gone(path).parent)
    assert path.exists()


def test_a_kernel_that_leaves_keeps_away_from_the_socket_of_another(home, tmp_path):
    other = make_socket(home / "other.sock")
    record = make_record(socket=str(other))
    path = discovery.write_record(tmp_path, record)
    discovery.forget_record(tmp_path, record)
    assert not path.exists()
    assert other.exists()


def test_a_users_kernel_that_leaves_is_noted_and_a_headless_one_is_not(tmp_path):
    for name, owner in (("sales", "user"), ("report", "bridge")):
        record = make_record(id=name, name=name, owner=owner)
        discovery.write_record(tmp_path, record)
        discovery.forget_record(tmp_path, record, "The kernel was restarted.")
    (departure,) = list_departures(tmp_path)
    assert (departure.name, departure.reason) == ("sales", "The kernel was restarted.")


def test_a_dead_record_that_its_successor_has_replaced_is_not_pruned(tmp_path, dead, monkeypatch):
    successor = make_record(id="same")

    def find_dead(record):  # the successor comes between the look at the process and the removal
        discovery.write_record(tmp_path, successor)
        return record.pid != dead["pid"]

    monkeypatch.setattr(discovery, "is_alive", find_dead)
    discovery.write_record(tmp_path, make_record(id="same", **dead))
    discovery.list_live_records(tmp_path)
    assert discovery.list_live_records(tmp_path) == (successor,)


@pytest.mark.parametrize("later", [-3600, 3600])
def test_another_process_with_the_same_pid_is_not_the_kernel(later):
    record = make_record(started=discovery.read_start_time(os.getpid()) + later)
    assert not discovery.is_alive(record)


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


# -- whatever else is in the folder ----------------------------------------------------------------

FIELDS = structs.asdict(make_record(id="bad", notebook="/sales.ipynb", socket="/nowhere/bad.sock"))


def write_fields(**changed):
    return lambda path: path.write_text(json.dumps(FIELDS | changed))


BAD = {
    "empty": lambda path: path.write_text(""),
    "no members": lambda path: path.write_text("{}"),
    "a list": lambda path: path.write_text("[]"),
    "a NUL": lambda path: path.write_text("\x00"),
    "a record's beginning": lambda path: path.write_text(json.dumps(FIELDS)[:-20]),
    "not UTF-8": lambda path: path.write_bytes(b'{"id": "\xff"}'),
    "deep": lambda path: path.write_text("[" * 50_000),
    "huge": lambda path: path.write_text(json.dumps(FIELDS) + " " * MAX_SIZE),
    "a negative pid": write_fields(pid=-5),
    "no pid": write_fields(pid=0),
    "a pid of no system": write_fields(pid=2**70),
    "a pid that is a text": write_fields(pid="one"),
    "a start that is no number": write_fields(started=float("nan")),
    "a NUL in the socket": write_fields(socket="/tmp/a\0b"),
    "no socket": write_fields(socket=""),
    "a port of no system": write_fields(port=2**16),
    "a NUL in the notebook": write_fields(notebook="/a\0b"),
    "wrong types": write_fields(id=1, name=[], protocol=None),
    "another record's id": write_fields(id="other"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a socket": make_socket,
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/at/all"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to what never ends": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def good(home):
    record = make_record(id="good")
    discovery.write_record(home, record)
    return record


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_other_files_than_records_are_left_alone_and_named_once_in_the_log(
    home, good, make, caplog
):
    path = home / "bad.json"
    make(path)
    ignored = IgnoredFiles()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert discovery.list_live_records(home, ignored) == (good,)
    assert os.path.lexists(path)
    assert caplog.text.count("bad.json', not a valid record: ") == 1


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("empty", "it is not valid JSON (Input data was truncated)."),
        ("no members", "object missing required field `pid`."),
        ("a list", "expected `object`, got `array`."),
        ("huge", "it is larger than 65,536 bytes."),
        ("no pid", "expected `int` >= 1 at `$.pid`."),
        ("a NUL in the socket", r"expected `str` matching regex '^[^\\x00]*$' at `$.socket`."),
        ("no socket", "expected `str` of length >= 1 at `$.socket`."),
        ("another record's id", "its `id` is 'other', which does not match the file name."),
        ("a folder", "it is not a regular file."),
        ("a link to nowhere", "it is a symbolic link."),
    ],
)
def test_the_log_says_what_is_wrong_with_a_file(home, caplog, kind, reason):
    BAD[kind](home / "bad.json")
    discovery.list_live_records(home, IgnoredFiles())
    assert caplog.messages == [f"Ignoring '{home}/bad.json', not a valid record: {reason}"]


def test_a_link_to_a_record_elsewhere_is_not_followed(home, good, tmp_path):
    elsewhere = discovery.write_record(tmp_path, make_record(id="bad"))
    (home / "bad.json").symlink_to(elsewhere)
    assert discovery.list_live_records(home) == (good,)


def test_a_file_that_becomes_a_record_is_used_and_named_again_when_it_is_none(home, good, caplog):
    ignored = IgnoredFiles()
    other = make_record(id="other")
    for _ in range(2):
        (home / "other.json").write_text("{")
        assert discovery.list_live_records(home, ignored) == (good,)
        discovery.write_record(home, other)
        assert set(discovery.list_live_records(home, ignored)) == {good, other}
    assert caplog.text.count("other.json") == 2


def test_a_file_in_place_of_the_folder_holds_no_records_and_is_logged(tmp_path, caplog):
    (tmp_path / "kernels").touch()
    assert discovery.list_live_records(tmp_path / "kernels", IgnoredFiles()) == ()
    assert "Not a directory" in caplog.text


def test_a_dead_record_that_cannot_be_removed_ends_nobody(home, good, dead, monkeypatch):
    discovery.write_record(home, make_record(id="dead", **dead))

    def refuse(*_args, **_options):
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert discovery.list_live_records(home) == (good,)


def test_a_good_record_in_a_folder_of_any_bad_ones(home, good):
    for number, make in enumerate(BAD.values()):
        make(home / f"{number}.json")
    assert discovery.list_live_records(home) == (good,)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NEARLY_RECORDS = st.dictionaries(st.sampled_from(sorted(FIELDS.keys() - {"port"})), JSON).map(
    lambda changed: json.dumps(FIELDS | changed).encode()
)


@given(content=st.binary() | JSON.map(lambda value: json.dumps(value).encode()) | NEARLY_RECORDS)
def test_no_file_ends_a_scan_or_the_attempt_to_link_its_kernel(content):
    with tempfile.TemporaryDirectory(prefix="mcpnb-") as name:
        folder = Path(name)
        write_private(folder / "bad.json", "")
        (folder / "bad.json").write_bytes(content)
        good = make_record(id="good")
        discovery.write_record(folder, good)
        records = discovery.list_live_records(folder)
        assert good in records
        for record in {*records, *discovery.read_records(folder)} - {good}:
            with pytest.raises(LinkError):
                anyio.run(Link(record, lambda _: None).connect)


def test_a_name_is_one_line_without_colours():
    assert (
        make_record(name="\x1b[31mAugust\nsäles" + "x" * 300).name[:20]
        == "?[31mAugust?säles" + "xxx"
    )
    assert len(make_record(name="x" * 300).name) == 255


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
    write_private_json(path, alive)
    assert discovery.read_bridge(path) == alive
    write_private_json(path, structs.replace(alive, **dead))
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


@pytest.mark.anyio
async def test_watching_goes_on_when_the_folder_is_removed_and_comes_back(tmp_path):
    folder = tmp_path / "kernels"
    record = make_record()
    discovery.write_record(folder, record)
    with anyio.fail_after(60):
        async with aclosing(discovery.watch_records(folder, rescan_interval=0.05)) as sets:
            for _ in range(2):  # before the watch begins, and while it runs
                while await anext(sets) != (record,):
                    pass
                shutil.rmtree(folder)
                while await anext(sets) != ():
                    pass
                discovery.write_record(folder, record)
            while await anext(sets) != (record,):
                pass


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are not UTF-8")
async def test_watching_goes_on_when_the_name_of_a_file_cannot_be_read(tmp_path, caplog):
    record, later = make_record(id="1"), make_record(id="2")
    discovery.write_record(tmp_path, record)
    with anyio.fail_after(60):
        async with aclosing(discovery.watch_records(tmp_path, rescan_interval=0.05)) as sets:
            assert await anext(sets) == (record,)
            (tmp_path / os.fsdecode(b"caf\xe9.json")).write_text("{}")
            while "cannot be watched" not in caplog.text:
                assert await anext(sets) == (record,)
            discovery.write_record(tmp_path, later)
            while await anext(sets) != (record, later):
                pass
