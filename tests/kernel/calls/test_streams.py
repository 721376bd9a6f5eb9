"""Calls keep what they print, and cells what they capture, while both run at the same time."""

import os
from contextlib import contextmanager

import pytest
from live import Link, kernel_with, record_of, text_of

TOOLS = """
import asyncio, contextlib, io, pickle, sys, threading, types, warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from unittest import mock
import cloudpickle
from IPython.utils.capture import capture_output
from mcp_notebook import mcp_tool

def say():
    print("printed")
    sys.stdout.write("written\\n")
    print("an error", file=sys.stderr)
    display("shown")

@mcp_tool(run="thread")
def in_thread() -> None:
    'Speak.'
    say()

@mcp_tool(run="fork", read_only=True)
def in_copy() -> None:
    'Speak.'
    say()

@mcp_tool(run="thread")
async def in_thread_of_coroutine() -> None:
    'Speak.'
    await asyncio.sleep(0)
    say()

@mcp_tool
async def in_coroutine() -> None:
    'Speak.'
    await asyncio.sleep(0)
    say()

@mcp_tool(executor=ThreadPoolExecutor(1))
def in_pool_of_threads() -> None:
    'Speak.'
    say()

@mcp_tool(executor=ProcessPoolExecutor(1))
def in_pool_of_processes() -> None:
    'Speak.'
    print("printed")
    sys.stdout.write("written\\n")
    print("an error", file=sys.stderr)
    from IPython.display import display
    display("shown")

@mcp_tool(run="thread")
def clear() -> None:
    'Clear.'
    print("gone")
    get_ipython().display_pub.clear_output()
    print("kept")

@mcp_tool(run="thread")
def warn() -> None:
    'Warn.'
    warnings.warn("only few values")

class Tee:
    def __init__(self, *streams):
        self.streams = streams
    def write(self, text):
        for stream in self.streams:
            stream.write(text)
        return len(text)
    def flush(self):
        pass
"""
kernel = kernel_with(TOOLS)

CELLS = {
    "%%capture": "%%capture captured\nprint('mine')\nhold()\n",
    "redirect_stdout": """
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
    print("mine")
    hold()
captured = out.getvalue()
""",
    "capture_output": """
with capture_output() as captured:
    print("mine")
    hold()
""",
    "a file": """
with open("log.txt", "w") as log, contextlib.redirect_stdout(log):
    print("mine")
    hold()
captured = open("log.txt").read()
""",
    "set by hand": """
before, out = sys.stdout, io.StringIO()
sys.stdout = Tee(out)
print("mine")
hold()
sys.stdout = before
captured = out.getvalue()
""",
    "unittest.mock": """
with mock.patch("sys.stdout", new_callable=io.StringIO) as out:
    print("mine")
    hold()
captured = out.getvalue()
""",
}
SAID = ["printed", "written", "an error", "'shown'"]


@pytest.fixture
def link(kernel):
    with Link(record_of(kernel)) as link:
        yield link


@contextmanager
def holding(kernel, cell):
    """Run a cell up to its `hold()` for the length of the block, then to its end."""
    began, go = (kernel.home / name for name in ("began", "go"))
    for path in (began, go):
        os.mkfifo(path)
    kernel.ok(f"def hold():\n    open({str(began)!r}, 'w').close()\n    open({str(go)!r}).close()")
    request = kernel.start(cell)
    began.open().close()
    try:
        yield
    finally:
        opened = os.open(go, os.O_RDWR)  # what `hold` waits for
        output = kernel.finish(request)
        os.close(opened)
        began.unlink()
        go.unlink()
        assert output.error is None, output.text


def read_captured(kernel):
    """Return what the last cell captured; the next cell prints to itself."""
    return kernel.ok("print(getattr(captured, 'stdout', captured))").stdout.split()


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("tool", ["in_thread", "in_copy", "in_thread_of_coroutine"])
def test_beside_a_cell_that_captures_its_output_a_call_keeps_its_own(kernel, link, cell, tool):
    with holding(kernel, cell):
        assert text_of(link.call(tool)).split("\n") == SAID
    assert read_captured(kernel) == ["mine"]


@pytest.mark.parametrize("tool", ["in_pool_of_threads", "in_pool_of_processes"])
def test_so_does_the_call_of_a_tool_with_an_executor(kernel, link, tool):
    with holding(kernel, CELLS["%%capture"]):
        assert text_of(link.call(tool)).split("\n") == SAID
    assert read_captured(kernel) == ["mine"]


def test_each_call_warns_anew_as_each_cell_does(link):
    for _ in range(2):
        assert text_of(link.call("warn")).startswith("Line 60: UserWarning: only few values")


def test_clearing_the_output_beside_such_a_cell_clears_that_of_the_call(kernel, link):
    with holding(kernel, CELLS["capture_output"]):
        assert text_of(link.call("clear")) == "kept"
    assert read_captured(kernel) == ["mine"]


ASYNC_CELL = """
with contextlib.redirect_stdout(io.StringIO()) as out:
    print("mine")
    open({began!r}, "w").close()
    await go.wait()
    print("mine")
captured = out.getvalue()
"""


def test_so_does_a_coroutine_beside_an_async_cell(kernel, link):
    began = kernel.home / "began"
    os.mkfifo(began)
    kernel.ok(
        "go = asyncio.Event()\n@mcp_tool\nasync def let_go() -> None:\n    'Go.'\n    go.set()"
    )
    request = kernel.start(ASYNC_CELL.format(began=str(began)))
    began.open().close()
    assert text_of(link.call("in_coroutine")).split("\n") == SAID
    link.call("let_go")
    assert kernel.finish(request).error is None
    began.unlink()
    assert read_captured(kernel) == ["mine", "mine"]


LATER = """
import threading
started, captures, spoken = threading.Event(), threading.Event(), threading.Event()

@mcp_tool(run="thread")
def speak_later() -> None:
    'Speak.'
    print("early")
    started.set()
    captures.wait(30)
    say()
    spoken.set()
"""


def test_a_capture_that_begins_or_ends_during_a_call_changes_nothing_for_it(kernel, link):
    kernel.ok(LATER)
    link.start("speak_later")
    kernel.ok("started.wait(30)")
    kernel.ok(
        "with capture_output() as captured:\n"
        "    print('mine'); captures.set(); spoken.wait(30); print('mine')"
    )
    assert text_of(link.result()).split("\n") == ["early", *SAID]
    assert read_captured(kernel) == ["mine", "mine"]
    kernel.ok("for event in (started, captures, spoken): event.clear()")
    with holding(kernel, "%%capture captured\nhold()"):
        link.start("speak_later")
    kernel.ok("started.wait(30); captures.set()")
    assert text_of(link.result()).split("\n") == ["early", *SAID]
    assert read_captured(kernel) == []


CAPTURING = """
entered, go_on = threading.Event(), threading.Event()

@mcp_tool(run="thread")
def capture() -> str:
    'Capture what it prints itself.'
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print("of the call")
        sys.stdout.write("written\\n")
        entered.set()
        go_on.wait(30)
    print("outside")
    return out.getvalue()
"""


def test_what_a_call_redirects_is_its_own_output_and_not_that_of_a_cell(kernel, link):
    kernel.ok(CAPTURING)
    link.start("capture")
    cell = "entered.wait(30); print('of the cell'); go_on.set()"
    assert kernel.ok(cell).stdout == "of the cell\n"
    assert text_of(link.result()).split() == ["outside", "of", "the", "call", "written"]
    assert kernel.ok("print('later')").stdout == "later\n"


CAPTURING_ALL = """
entered, go_on, left = threading.Event(), threading.Event(), threading.Event()

@mcp_tool(run="thread")
def capture_all() -> str:
    'Capture what it shows itself.'
    with capture_output() as own:
        entered.set()
        go_on.wait(30)
        display("of the call")
        sys.displayhook("its value")
    left.set()
    display("outside")
    return str([output["data"]["text/plain"] for output in map(read_output, own.outputs)])

def read_output(output):
    return output if isinstance(output, dict) else vars(output)
"""


def test_displays_that_a_call_captures_are_its_own_and_not_those_of_a_cell(kernel, link):
    kernel.ok(CAPTURING_ALL)
    link.start("capture_all")
    kernel.ok("entered.wait(30)")
    kernel.ok(
        "with capture_output() as captured:\n"
        "    display('mine'); go_on.set(); left.wait(30); sys.displayhook('mine')"
    )
    shown = ["'outside'", """["'of the call'", "'its value'"]"""]
    assert text_of(link.result()).splitlines() == shown
    assert kernel.ok("print(len(captured.outputs))").stdout == "2\n"
    output = kernel.ok("display('later'); 7")
    assert [data["text/plain"] for data in output.displays] == ["'later'", "7"]


LEAVING = """
@mcp_tool
def leave_a_stream() -> None:
    'Leave.'
    sys.stdout = io.StringIO()
    print("lost")
"""


def test_a_stream_that_a_call_leaves_behind_is_gone_with_it(kernel, link):
    kernel.ok(LEAVING)
    link.call("leave_a_stream")
    assert kernel.ok("print('later')").stdout == "later\n"
    assert text_of(link.call("in_thread")).split("\n") == SAID


def test_sys_stays_the_module_that_it_is_for_users(kernel):
    assert kernel.ok(
        "import importlib, types\n"
        "module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec('m', None))\n"
        "out = io.StringIO()\n"
        "with contextlib.redirect_stdout(out):\n"
        "    same = sys.stdout is out\n"
        "print(same, type(module) is types.ModuleType, hasattr(module, 'stdout'),\n"
        "      pickle.loads(cloudpickle.dumps(lambda: sys))() is sys)"
    ).stdout.split() == ["True", "True", "False", "True"]


@pytest.mark.slow
def test_sys_is_as_it_was_when_the_extension_is_unloaded(kernel):
    kernel.ok("%unload_ext mcp_notebook")
    assert kernel.ok(
        "print(type(sys) is types.ModuleType, vars(sys)['stdout'] is sys.stdout,\n"
        "      type(sys.stdout).__mro__[0].__module__)"
    ).stdout.split() == ["True", "True", "ipykernel.iostream"]
