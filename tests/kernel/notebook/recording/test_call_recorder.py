"""The recorder: a valid notebook at every moment, whatever happens to it, and no call lost."""

import json
import os
import signal
import subprocess
import threading
import time

import nbformat
import pytest
from forked_command import KERNEL, find_pid, list_words
from recorded_cells import read_call_cells

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.errors import RecordingError
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.recording import call_recorder
from mcp_notebook.kernel.notebook.recording.call_recorder import CallRecorder, find_free_name
from mcp_notebook.kernel.tools.context import ClientProgram

RESULT = Result([Text("five"), Image(b"12345")], structured={"result": 5})


def entry(number=1, **changes):
    fields = {
        "number": number,
        "came": time.time(),
        "client": ClientProgram("editor", "1.2"),
        "tool": "rain",
        "source_hash": "abc",
        "arguments": {"number": number},
        "state": CallState.DONE,
        "queue_seconds": 0.0004,
        "run_seconds": 3.42,
    }
    return LoggedCall(**fields | changes)


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def numbers_in(path):
    return [cell.call.arguments["number"] for cell in read_call_cells(read(path))]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.ipynb"


def test_a_recording_is_a_valid_notebook_before_the_first_call_and_after_each(path):
    recorder = CallRecorder(path, "sales.ipynb")
    assert read(path).cells[0].source.startswith("# Calls of sales.ipynb")
    for number in range(1, 4):
        recorder.call_ended(entry(number), RESULT)
        assert recorder.flush()
        assert numbers_in(path) == list(range(1, number + 1))
    assert recorder.close()
    (cell, *_) = read_call_cells(read(path))
    assert (cell.call.client, cell.call.source_hash) == ("editor 1.2", "abc")
    assert cell.outputs[1].data["image/png"] == "MTIzNDU="
    assert path.stat().st_mode & 0o777 == 0o600


def test_calls_of_many_threads_are_all_recorded_once(path):
    recorder = CallRecorder(path, "sales.ipynb")

    def work(first):
        for number in range(first, first + 50):
            recorder.call_ended(entry(number), RESULT)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 400, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.close()
    assert sorted(numbers_in(path)) == list(range(400))
    assert recorder.count == 400


def test_what_comes_after_the_end_is_not_recorded(path):
    recorder = CallRecorder(path, "sales.ipynb")
    recorder.close()
    recorder.call_ended(entry(), RESULT)
    assert numbers_in(path) == []


def test_a_file_that_is_there_is_not_touched(path):
    path.write_text("mine")
    with pytest.raises(RecordingError, match=r"already exists\. Name another file, or add"):
        CallRecorder(path, "sales.ipynb")
    with pytest.raises(
        RecordingError, match="is not a recording of calls, so calls cannot be added"
    ):
        CallRecorder(path, "sales.ipynb", appends=True)
    assert path.read_text() == "mine"
    assert find_free_name(path).name == "calls-2.ipynb"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RecordingError, match="cannot be written: No such file or directory"):
        CallRecorder(tmp_path / "nowhere" / "calls.ipynb", "sales.ipynb")


def test_calls_are_added_to_a_recording(path):
    first = CallRecorder(path, "sales.ipynb")
    first.call_ended(entry(1), RESULT)
    first.close()
    second = CallRecorder(path, "sales.ipynb", appends=True)
    second.call_ended(entry(2), RESULT)
    second.close()
    assert numbers_in(path) == [1, 2]


def test_a_cell_converts_what_the_client_sent_where_the_function_gets_something_else(path):
    schema = {"properties": {"day": {"type": "string", "format": "date"}}}
    recorder = CallRecorder(path, "sales.ipynb")
    recorder.call_ended(entry(arguments={"day": "2015-01-02"}, function_schema=schema), RESULT)
    recorder.close()
    assert read(path).cells[1].source == '%mcp call rain {"day": "2015-01-02"}'


def test_nothing_is_added_to_a_notebook_that_is_not_a_recording(path):
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "ir", "display_name": "R"}}
    )
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="is not a recording of calls"):
        CallRecorder(path, "sales.ipynb", appends=True)
    assert path.read_bytes() == before


def test_a_flush_does_not_wait_for_the_pause_after_a_slow_write(path, monkeypatch):
    monkeypatch.setattr(call_recorder, "_PAUSE", 1e9)
    recorder = CallRecorder(path, "sales.ipynb")
    for number in (1, 2):
        recorder.call_ended(entry(number), RESULT)
        assert recorder.flush(20)
        assert numbers_in(path)[-1] == number
    recorder.close()


def test_a_link_to_a_recording_stays_one(path):
    CallRecorder(path, "sales.ipynb").close()
    link = path.with_name("link.ipynb")
    link.symlink_to(path)
    recorder = CallRecorder(link, "sales.ipynb", appends=True)
    recorder.call_ended(entry(1), RESULT)
    recorder.close()
    assert link.is_symlink()
    assert numbers_in(path) == [1]


def test_changes_saved_by_another_program_stay(path):
    recorder = CallRecorder(path, "sales.ipynb")
    recorder.call_ended(entry(1), RESULT)
    recorder.flush()
    notebook = read(path)
    notebook.cells.append(nbformat.v4.new_markdown_cell("My note."))
    nbformat.write(notebook, path)  # as Jupyter does
    recorder.call_ended(entry(2), RESULT)
    recorder.close()
    assert numbers_in(path) == [1, 2]
    assert "My note." in [cell.source for cell in read(path).cells]


def test_a_file_that_became_something_else_is_left_alone(path):
    recorder = CallRecorder(path, "sales.ipynb")
    path.write_text("mine")
    recorder.call_ended(entry(1), RESULT)
    recorder.close()
    assert path.read_text() == "mine"
    assert numbers_in(path.with_name("calls-2.ipynb")) == [1]
    assert recorder.path.name == "calls-2.ipynb"


def test_a_file_that_is_removed_comes_back(path):
    recorder = CallRecorder(path, "sales.ipynb")
    path.unlink()
    recorder.call_ended(entry(1), RESULT)
    recorder.close()
    assert numbers_in(path) == [1]


def test_a_full_disk_is_told_and_loses_no_call(path, monkeypatch):
    monkeypatch.setattr(call_recorder, "RETRY", 0.01)
    recorder = CallRecorder(path, "sales.ipynb")
    make_file = call_recorder.tempfile.mkstemp
    full = threading.Event()

    def make_file_on_full_disk(**where):
        full.set()
        descriptor, name = make_file(**where)
        os.close(descriptor)
        return os.open("/dev/full", os.O_RDWR), name

    monkeypatch.setattr(call_recorder.tempfile, "mkstemp", make_file_on_full_disk)
    recorder.call_ended(entry(1), RESULT)
    assert full.wait(30)
    assert not recorder.flush(0.2)
    assert len(list(path.parent.glob(".*.tmp"))) <= 1  # of a try that goes on just now
    assert (
        "cannot be written (No space left on device), and lacks 1 call. Free" in recorder.describe()
    )
    monkeypatch.setattr(call_recorder.tempfile, "mkstemp", make_file)
    assert recorder.flush(30)
    assert numbers_in(path) == [1]
    assert recorder.describe().endswith("1 call so far.")
    recorder.close()


def test_calls_beyond_what_may_wait_are_counted(path, monkeypatch):
    recorder = CallRecorder(path, "sales.ipynb")
    monkeypatch.setattr(call_recorder, "MAX_WAITING", -1)
    recorder.call_ended(entry(1), RESULT)
    assert recorder.describe().endswith("Not recorded, as the disk was too slow: 1 call.")
    recorder.close()


WRITER = """
import time
from pathlib import Path
from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.recording.call_recorder import CallRecorder
recorder = CallRecorder(Path("calls.ipynb"), "sales.ipynb")
print("ready", flush=True)
number = 0
while True:
    number += 1
    entry = LoggedCall(
        number=number, came=time.time(), client=None, tool="rain", source_hash="abc",
        arguments={"number": number}, state=CallState.DONE, queue_seconds=0, run_seconds=1,
    )
    recorder.call_ended(entry, Result([Text("x" * 200_000)]))
    recorder.flush()
    print(number, flush=True)
"""


@pytest.mark.parametrize("calls", [1, 20])
def test_a_kill_at_any_moment_leaves_a_valid_notebook(path, calls):
    path.with_name("writer.py").write_text(WRITER)
    command = list_words(module="writer", like=KERNEL)
    writer = subprocess.Popen(command, cwd=path.parent, stdout=subprocess.PIPE, text=True)
    written = 0
    for line in writer.stdout:
        written = 0 if line == "ready\n" else int(line)
        if written == calls:
            os.kill(find_pid(writer.pid), signal.SIGKILL)
            break
    rest = writer.stdout.read().split()
    writer.wait()
    writer.stdout.close()
    known = int(rest[-1]) if rest else written
    found = numbers_in(path)
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= known


def test_a_hostile_result_is_written_as_text(path):
    recorder = CallRecorder(path, "<script>alert(1)</script>\ud800")
    recorder.call_ended(entry(1, tool="a\ud800"), Result([Text("\ud800</script>\x00")]))
    recorder.close()
    assert json.loads(path.read_text(encoding="utf-8"))["nbformat"] == 4
    assert len(numbers_in(path)) == 1
