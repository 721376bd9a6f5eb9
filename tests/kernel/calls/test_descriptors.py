"""What the programs that a tool starts print, in a real kernel."""

import hashlib
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from live import TIMEOUT, live_kernel, text_of

from mcp_notebook.kernel.calls.descriptors import Descriptors

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ipykernel reads no descriptors")

TOOLS = """
import os, subprocess, sys
from mcp_notebook import mcp_tool

@mcp_tool
def run_programs(number: int) -> str:
    'Run.'
    for i in range(number):
        os.system(f"echo system {i}")
    subprocess.run([sys.executable, "-c", "import sys; print('error', file=sys.stderr)"])
    os.write(1, b"straight\\n")
    return "done"

@mcp_tool
def fail() -> str:
    'Fail.'
    os.system("echo before")
    raise ValueError("on purpose")

@mcp_tool
def flood() -> str:
    'Flood.'
    subprocess.run([sys.executable, "-c", "for i in range(50_000): print('line', i)"])
    return "done"
"""


@pytest.fixture(scope="module")
def kernel(module_home):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST")  # with it, ipykernel leaves the descriptors alone
        with live_kernel(module_home) as kernel:
            kernel.ok("%load_ext mcp_notebook")
            kernel.ok(TOOLS)
            patch.undo()
            yield kernel


def test_what_programs_print_is_in_the_result_and_not_in_the_cell(kernel, link):
    for _ in range(5):
        text = text_of(link.call("run_programs", number=3))
        for line in ("system 0", "system 1", "system 2", "error", "straight"):
            assert text.count(line) == 1
    output = kernel.ok("print('mine')")
    assert (output.stdout, output.stderr) == ("mine\n", "")


def test_it_comes_with_an_exception(kernel, link):
    text = text_of(link.call("fail"))
    assert text.startswith("before")
    assert "ValueError: on purpose" in text


def test_a_flood_is_cut_as_prints_are(kernel, link):
    text = text_of(link.call("flood"))
    assert "line 0" in text
    assert len(text) < 30_000


def test_what_a_program_of_a_cell_prints_stays_there(kernel, link):
    link.call("run_programs", number=1)
    seen = kernel.home / "seen"
    os.mkfifo(seen)
    request = kernel.start(f"os.system('echo of the cell')\nopen({str(seen)!r}).read()")
    while "of the cell" not in (message := kernel.client.get_iopub_msg(timeout=TIMEOUT))[
        "content"
    ].get("text", ""):
        pass
    assert message["parent_header"]["msg_id"] == request
    seen.write_text("")
    assert kernel.finish(request).error is None


@pytest.mark.skipif(sys.platform != "linux", reason="says what its threads do")
def test_what_has_been_read_is_waited_for_until_it_is_passed_on():
    """As on a busy machine: whoever reads the pipe is at work, but not done."""
    descriptors, taken = Descriptors(settle_limit=TIMEOUT), []
    reading, writing = os.pipe()

    def pass_on():
        while text := os.read(reading, 100):
            hashlib.sha256(bytes(20_000_000))
            descriptors.find_writer()(text)

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    descriptors.watch(SimpleNamespace(watch_fd_thread=thread, _fid=reading))
    claim = descriptors.claim(taken.append)
    # By a program: what the call itself writes is waited for only if nobody has begun to read it.
    subprocess.run(["printf", "straight"], stdout=writing, check=True)
    descriptors.release(claim)
    os.close(writing)
    thread.join()
    os.close(reading)
    assert taken == [b"straight"]
