"""Drawing in a process of its own: what hangs, crashes or is missing costs the kernel little."""

import os
import subprocess
import sys
import threading
from functools import partial

import psutil
import pytest

from mcp_notebook.kernel.results.plots.renderer import RESULT_DRAWINGS, NotDrawn, draw
from mcp_notebook.kernel.safe.foreign_code import deadline
from mcp_notebook.kernel.safe.interrupter import AsyncInterrupter

LIMIT = 30


@pytest.fixture
def running(tmp_path):
    """Return what makes a function that draws with any Python program."""

    def make_drawing(source, **options):
        path = tmp_path / "program.py"
        path.write_text(source)
        return partial(draw, program=path, **options)

    return make_drawing


def children():
    return psutil.Process().children(recursive=True)


def test_a_picture_is_what_the_process_writes(running):
    drawing = running("import sys; sys.stdin.read(); sys.stdout.write('picture')")
    assert drawing("kaleido", "x" * 1_000_000) == b"picture"


@pytest.mark.slow
def test_what_takes_too_long_is_ended_with_its_children(running):
    drawing = running(
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\n"
        "time.sleep(600)",
        seconds=1.5,
    )
    before = children()
    with pytest.raises(NotDrawn, match=r"kaleido did not draw it within 1\.5 seconds"):
        drawing("kaleido", "one")
    _, alive = psutil.wait_procs([child for child in children() if child not in before], LIMIT)
    assert not alive


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
@pytest.mark.parametrize("moment", ["before", "while it starts", "after"])
def test_an_interrupt_ends_the_drawing(running, tmp_path, monkeypatch, moment):
    started = tmp_path / "started"
    os.mkfifo(started)
    drawing = running(f"import time; open({str(started)!r}, 'w').close(); time.sleep(600)")
    before = children()
    caught, begun, made = threading.Event(), threading.Event(), []

    class Popen(subprocess.Popen):
        """Starts a process, and waits for an interrupt that comes meanwhile."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            if moment == "while it starts":
                begun.set()
                interrupted.wait(LIMIT)

    interrupted = threading.Event()
    monkeypatch.setattr(subprocess, "Popen", Popen)

    def draw():
        if moment == "before":
            begun.set()
            interrupted.wait(LIMIT)
        drawing("kaleido", "")

    def call():
        made.append(AsyncInterrupter(KeyboardInterrupt))
        try:
            made[0].run(draw)
        except KeyboardInterrupt:
            caught.set()
        finally:
            made[0].remove()

    thread = threading.Thread(target=call)
    thread.start()
    if moment == "after":
        started.read_text()  # returns when the process has closed its end
    else:
        assert begun.wait(LIMIT)
    assert made[0].interrupt()
    interrupted.set()
    thread.join(LIMIT)
    assert caught.is_set()
    assert [child for child in children() if child not in before] == []


@pytest.mark.needs("vl_convert")
def test_a_module_in_the_notebooks_folder_is_not_taken_for_the_library(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("vl_convert")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    assert draw("vl_convert_svg", svg, scale=1.0).startswith(b"\x89PNG")


@pytest.mark.needs("vl_convert")
def test_a_failure_is_told_without_the_stack_of_the_library(monkeypatch):
    pytest.importorskip("vl_convert")
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    with pytest.raises(NotDrawn, match=r"does not have a root node$"):
        draw("vl_convert_svg", "<svg", scale=1.0)
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    with pytest.raises(NotDrawn, match=r"Cannot read properties of undefined \(\S+ '\w+'\)$"):
        draw("vl_convert_vega", '{"mark": "nope"}', scale=1.0, schema=schema)


def test_one_result_starts_a_bounded_number_of_processes(running, tmp_path):
    log = tmp_path / "starts"
    drawing = running(f"open({str(log)!r}, 'a').write('x'); raise SystemExit('no such library')")
    with deadline():
        for _ in range(RESULT_DRAWINGS + 10):
            with pytest.raises(NotDrawn):
                drawing("vl_convert_svg", "")
    assert len(log.read_text()) == RESULT_DRAWINGS


def test_all_plots_of_one_result_have_a_bound_together(running):
    drawing = running("import time; time.sleep(600)", result_seconds=0.2)
    with deadline():
        with pytest.raises(NotDrawn, match=r"kaleido did not draw it within 0\.2"):
            drawing("kaleido", "one")
        with pytest.raises(NotDrawn, match=r"^earlier plots took the 0\.2 seconds"):
            drawing("vl_convert_svg", "two")
    with deadline(), pytest.raises(NotDrawn, match=r"vl-convert did not draw it within 0\.2"):
        drawing("vl_convert_svg", "two")


def test_a_crash_of_a_library_is_a_failure(running):
    drawing = running("import os; os.abort()")
    with pytest.raises(NotDrawn, match="vl-convert failed: its process ended with"):
        drawing("vl_convert_vega", "")
