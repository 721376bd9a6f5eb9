"""What a process waits for, as the system tells it."""

import subprocess
import sys

import pytest

from mcp_notebook.kernel.fork.endless_wait import waits_for_ever

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")

LOCK = "import threading; lock = threading.Lock(); lock.acquire(); print(flush=True);"

READ_A_PIPE = """
import os, subprocess, sys, threading
here, there = os.pipe()
threading.Thread(target=os.read, args=(here, 1)).start()
"""

PROGRAM = """
wait = "import sys; sys.stdin.read()"  # ends with this process
program = subprocess.Popen(
    [sys.executable, "-c", wait], stdin=subprocess.PIPE, pass_fds=[there]
)
"""

PING_PONG = """
import threading
here, there = threading.Semaphore(), threading.Semaphore(0)
def pass_on(mine, other):
    while True:
        mine.acquire()
        other.release()
threading.Thread(target=pass_on, args=(there, here)).start()
print(flush=True)
pass_on(here, there)
"""


@pytest.fixture
def start():
    programs = []

    def start(code):
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        programs.append(program)
        program.stdout.readline()
        return program

    yield start
    for program in programs:
        program.kill()
        program.wait()
        program.stdout.close()


def test_a_lock_that_is_never_released_is_waited_for_forever(start):
    program = start(f"{LOCK} lock.acquire()")
    while not waits_for_ever(program.pid):
        assert program.poll() is None


def test_a_thread_that_reads_a_pipe_of_its_own_process_brings_nothing(start):
    program = start(f"{READ_A_PIPE}\n{LOCK} lock.acquire()")
    while not waits_for_ever(program.pid):
        assert program.poll() is None


@pytest.mark.parametrize(
    "code",
    [
        f"{READ_A_PIPE}\n{PROGRAM}\n{LOCK} lock.acquire()",
        f"{LOCK} lock.acquire(timeout=600)",
        f"{LOCK} threading.Thread(target=lock.acquire).start(); import time; time.sleep(600)",
        "import sys; print(flush=True); sys.stdin.read()",
        PING_PONG,
        "import time; print(flush=True); time.sleep(600)",
        "print(flush=True)\nwhile True: pass",
    ],
)
def test_any_other_wait_may_end(start, code):
    program = start(code)
    assert not any(waits_for_ever(program.pid) for _ in range(1000))


def test_a_process_that_is_gone_does_not_wait(start):
    program = start("print()")
    program.wait()
    assert not waits_for_ever(program.pid)
