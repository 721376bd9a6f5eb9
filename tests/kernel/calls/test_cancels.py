"""A cancel leaves nothing behind, at whichever moment it comes."""

import itertools
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from live import Link, live_kernel, record_of, text_of, until

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.tools.context import Context
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.open_questions import Elicitations, Reply
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.wire import messages

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")

UNWANTED = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))

# -- at each line that a call comes through --------------------------------------------------------


def count_to(number: int) -> str:
    """Count."""
    return str(sum(range(number)))


def return_file() -> Path:
    """Return a file."""
    return Path(__file__)


class Slow:
    """Has a repr of its own, whose time is limited."""

    def __repr__(self):
        return "slow"


def return_object() -> object:
    """Return an object."""
    return Slow()


def ask(ctx: Context) -> str:
    """Ask the user."""
    return str(ctx.elicit("Go on?").accepted)


def start_thread() -> str:
    """Start a thread that runs the notebook's own code."""
    thread = threading.Thread(target=count_in_notebook)
    thread.start()
    thread.join()
    return "done"


def count_in_notebook():
    count_to(3)


count_in_notebook.__module__ = "__main__"


class CancelledAtStep:
    """A trace function that cancels a call when its thread comes to a certain line of Python.

    Args:
        call: To be cancelled.
        step: How many lines its thread runs before.
    """

    def __init__(self, call, step):
        self.call, self.step, self.thread, self.place = call, step, None, None
        self.canceller = threading.Thread(target=self.cancel)

    @property
    def is_used(self):
        return self.canceller.ident is not None

    def join(self):
        if self.is_used:
            self.canceller.join()

    def __call__(self, frame, event, _argument):
        if self.thread is None and self.call.began is not None:
            self.thread = threading.get_ident()
        if threading.get_ident() == self.thread and event == "line" and not self.call.has_ended:
            self.step -= 1
            if self.step == 0:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                self.canceller.start()
                self.canceller.join(0.02)  # its thread may hold the call's lock
        return self

    def cancel(self):
        interrupt = self.call.request_stop(UNWANTED)
        if interrupt is not None:
            interrupt()


def list_resources():
    """Return what a call could leave behind in this process and its folder for temporary files."""
    found = Counter()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers
        with suppress(OSError):  # that of the folder
            found[os.readlink(f"/proc/self/fd/{number}")] += 1  # noqa: PTH115
    found.update(str(path) for path in Path(tempfile.gettempdir()).iterdir())
    threads = (thread.name for thread in threading.enumerate() if thread.is_alive())
    found.update(name for name in threads if not name.startswith("Dummy"))  # of who looks on
    found.update(map(repr, warnings.filters))
    return found


@pytest.fixture(scope="module")
def executors():
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as processes,
        ThreadPoolExecutor(1) as threads,
    ):
        processes.submit(int).result()
        threads.submit(int).result()
        yield {"processes": processes, "threads": threads}


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


CALLS = {
    "processes": (count_to, {"number": 3}),
    "threads": (count_to, {"number": 3}),
    "file": (return_file, {}),
    "object": (return_object, {}),
    "question": (ask, {}),
    "thread": (start_thread, {}),
}
PLACES = ["run_on_main", "run_in_thread", "run_inline"]


def make_call(kind, queue):
    """Return a call of a kind whose questions are answered."""
    function, arguments = CALLS[kind]
    answering = SimpleNamespace()

    def answer(question):
        if hasattr(question, "key"):
            reply = question.number, Reply("accept", {})
            threading.Thread(target=answering.elicitations.answer, args=reply).start()

    answering.elicitations = Elicitations(answer)
    call = ActiveCall(
        function.__name__,
        arguments,
        run="thread",
        reply=lambda _: None,
        lock=queue.lock,
        elicitations=answering.elicitations,
    )
    queue.add(call)
    return call


@contextmanager
def swallowed_interrupts():
    """Let Python swallow interrupts, as in a callback of a weak reference, and nothing else."""
    report = sys.unraisablehook  # pytest's: it fails the test

    def report_others(unraisable):
        if unraisable.exc_type is not KeyboardInterrupt:
            report(unraisable)

    sys.unraisablehook = report_others
    try:
        yield
    finally:
        sys.unraisablehook = report


def run_apart(run, call):
    """Run the call in a generator, which has an exception state of its own.

    Python 3.11 forgets to leave an ``except`` block when a trace function raises at its ``return``:
    the exception that the block handles would be the context of all later errors of this thread.
    """
    yield run(call)


@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    "stride",
    [
        101,
        pytest.param(23, marks=pytest.mark.slow),
        pytest.param(5, marks=[pytest.mark.exhaustive, pytest.mark.timeout(1200)]),
    ],
)
def test_a_cancel_at_any_line_leaves_nothing_behind(request, place, kind, stride):
    queue, executors = map(request.getfixturevalue, ("queue", "executors"))
    options = ToolOptions(executor=executors.get(kind))
    request.getfixturevalue("registry").add(make_tool(CALLS[kind][0], options))
    run = request.getfixturevalue(place)
    run(make_call(kind, queue))  # what it imports stays
    until(lambda: not any("mcp-notebook" in name for name in list_resources()))
    before = list_resources()
    for step in itertools.count(1, stride):
        call = make_call(kind, queue)
        tracer = CancelledAtStep(call, step)
        threading.settrace(tracer)
        sys.settrace(tracer)
        with swallowed_interrupts():
            try:
                next(run_apart(run, call))
            finally:
                sys.settrace(None)
                threading.settrace(None)
            tracer.join()
            until(
                lambda: not list_resources() - before,
                lambda step=step, tracer=tracer: (step, tracer.place, list_resources() - before),
            )
        if not tracer.is_used:
            break
    assert sys.exc_info() == (None, None, None)


# -- at random moments, in a kernel ----------------------------------------------------------------

TOOLS = """
import asyncio, pathlib, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from mcp_notebook import Context, mcp_tool

processes = ProcessPoolExecutor(1, get_context("forkserver"))
threads = ThreadPoolExecutor(1)
shown = pathlib.Path("shown.csv")
shown.write_text("a,b\\n1,2\\n")

def main(seconds: float) -> str:
    '''Sleep.'''
    time.sleep(seconds)

async def coroutine(seconds: float) -> str:
    '''Sleep on the loop.'''
    await asyncio.sleep(seconds)

async def blocking_coroutine(seconds: float) -> str:
    '''Hold the loop.'''
    time.sleep(seconds)

def thread(seconds: float) -> pathlib.Path:
    '''Sleep, and return a file.'''
    time.sleep(seconds)
    return shown

async def threaded_coroutine(seconds: float) -> str:
    '''Sleep on a loop in a thread.'''
    await asyncio.sleep(seconds)

def plot(seconds: float) -> None:
    '''Plot.'''
    import matplotlib.pyplot as plt
    plt.plot([1, 2])

def in_process(seconds: float, ctx: Context) -> str:
    '''Sleep in a process.'''
    ctx.progress(1, 2)
    time.sleep(seconds)

def in_pool(seconds: float) -> str:
    '''Sleep in a thread of a pool.'''
    time.sleep(seconds)

def fork(seconds: float) -> str:
    '''Sleep in a copy of the kernel.'''
    time.sleep(seconds)

for function in (main, coroutine, blocking_coroutine, plot):
    mcp_tool(function)
for function in (thread, threaded_coroutine):
    mcp_tool(function, run="thread")
mcp_tool(in_process, executor=processes)
mcp_tool(in_pool, executor=threads)
mcp_tool(fork, run="fork", read_only=True)
"""
KINDS = (
    "main",
    "coroutine",
    "blocking_coroutine",
    "thread",
    "threaded_coroutine",
    "plot",
    "in_process",
    "in_pool",
    "fork",
)
STOPPED_AT_ONCE = ("main", "coroutine", "threaded_coroutine", "fork")
"""Those that a cancel also wakes up."""
IN_SHORT = ("main", "coroutine", "thread", "in_pool", "fork")
THOROUGH = [pytest.mark.exhaustive, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def kernel(module_home):
    folder = module_home / "tmp"
    folder.mkdir()
    with live_kernel(module_home, env={"TMPDIR": str(folder)}) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOLS)
        yield kernel


def list_kernels_resources(kernel):
    """Return what a call could leave behind in a kernel: descriptors, files, threads, processes."""
    process = psutil.Process(kernel.pid)
    found = Counter()
    folder = Path(f"/proc/{kernel.pid}/fd")
    for file in folder.iterdir():
        with suppress(OSError):  # closed meanwhile
            found[os.readlink(file).partition("[")[0]] += 1  # noqa: PTH115
    found.update(str(path) for path in (kernel.home / "tmp").rglob("*"))
    found["threads"] = process.num_threads()
    found.update(f"process {child.pid}" for child in process.children(recursive=True))
    return found


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *itertools.product(IN_SHORT, [20]),
        *(pytest.param(kind, 60, marks=pytest.mark.slow) for kind in KINDS),
        *(pytest.param(kind, 300, marks=THOROUGH) for kind in KINDS),
    ],
)
def test_cancels_at_random_moments_leave_nothing_behind(kernel, kind, number):
    chance = random.Random(f"{kind} {number}")
    with Link(record_of(kernel)) as link:
        for _ in range(3):  # what it imports and starts for good
            link.call(kind, seconds=0)
        before = list_kernels_resources(kernel)
        most = 60 if kind in STOPPED_AT_ONCE else 0.02
        for _ in range(number):
            call = link.start(kind, seconds=chance.choice([0, 0.001, most]))
            moment = time.monotonic() + chance.expovariate(200)
            while time.monotonic() < moment:
                pass
            link.send(messages.Cancel(id=call, reason="No longer wanted."))
            link.result()
        until(
            lambda: not list_kernels_resources(kernel) - before,
            lambda: list_kernels_resources(kernel) - before,
        )
        assert "No longer wanted" not in text_of(link.call(kind, seconds=0))
    output = kernel.ok("print('as before')")
    assert output.text.strip() == "as before"
