"""Forks beside threads that run Python and multiply matrices."""

import os
import subprocess
import sys

import pytest

from mcp_notebook.kernel.fork.raw_fork import has_raw_fork

pytestmark = pytest.mark.skipif(not has_raw_fork(), reason="the system has no such fork")

# In a program of its own: the test's has threads that no copy should have.
PROGRAM = """
import os, signal, sys, threading
import numpy as np
from mcp_notebook.kernel.fork import raw_fork
from mcp_notebook.kernel.fork.raw_fork import BlasThreads, fork_process

is_raw = sys.argv[2] == "raw"
raw_fork.has_raw_fork = lambda: is_raw
a, ends, hooks = np.random.rand(300, 300), threading.Event(), []
os.register_at_fork(after_in_child=lambda: hooks.append("in the copy"))

def multiply():
    while not ends.is_set():
        a @ a

def compute():
    while not ends.is_set():
        sum(range(1000))

threads = [threading.Thread(target=function) for function in (multiply, compute)[not is_raw :]]
for thread in threads:
    thread.start()
good = 0
for _ in range(int(sys.argv[1])):
    def fork():
        global good
        blas = BlasThreads()
        pid = fork_process()
        if pid == 0:
            signal.alarm(30)
            blas.do_without()
            a @ a
            is_right = hooks == ["in the copy"] and threading.active_count() == 1
            is_right &= threading.current_thread() is threading.main_thread()
            os._exit(0 if is_right else 1)
        good += os.waitpid(pid, 0)[1] == 0
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
ends.set()
for thread in threads:
    thread.join()
print(good, hooks)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "how"),
    # Not raw, as on macOS: OpenBLAS's threads could stop that, so only Python computes there.
    [(10, "raw"), (10, "with handlers"), pytest.param(40, "raw", marks=pytest.mark.slow)],
)
def test_a_fork_beside_threads_that_compute_stops_neither_side(times, how):
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(times), how],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
        check=False,
    )
    assert ran.stdout == f"{times} []\n", ran.stderr
