"""A cancel leaves nothing behind, at whichever moment it comes."""

import itertools
import multiprocessing
import os
import sys
import tempfile
import threading
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from live import until

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.tools.context import Context
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.open_questions import Elicitations, Reply
from mcp_notebook.kernel.tools.options import ToolOptions

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
            if self.step <= 0 and self.canceller.ident is None and _can_start_threads():
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                self.canceller.start()
                self.canceller.join(0.02)  # its thread may hold the call's lock
        return self

    def cancel(self):
        interrupt = self.call.request_stop(UNWANTED)
        if interrupt is not None:
            interrupt()


def _can_start_threads():
    """Return whether no line of `threading` runs with a lock that the start of a thread takes."""
    names = ("_active_limbo_lock", "_shutdown_locks_lock")
    return not any(getattr(threading, name).locked() for name in names if hasattr(threading, name))


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
