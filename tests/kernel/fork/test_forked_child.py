"""A copy of a process without a kernel: what it lets go of, and how its end is seen."""

import os
import socket
import subprocess
import sys

import pytest
from live import wait_for_ends

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system makes no copies")

PROGRAM = """
import os, random, signal, socket, sys, threading, time
from mcp_notebook.kernel.fork.forked_child import ForkedChild

def run(work, seconds=30):
    child = ForkedChild()
    child.start(work, seconds=seconds)
    received = list(child.receive())
    child.close()
    return received, child.status
"""


def run_program(code):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.split("\n")[:-1]


def test_what_it_sends_is_received_and_its_status_is_known():
    assert run_program(
        "print(run(lambda c: (c.send(1), c.send('two'))))\n"
        "print(run(lambda c: os._exit(3)))\n"
        "print(run(lambda c: os.kill(os.getpid(), signal.SIGKILL)))\n"
        "print(run(lambda c: sys.exit(1)))\n"
    ) == ["([1, 'two'], 0)", "([], 3)", "([], -9)", "([], 70)"]


def test_what_it_sends_just_before_it_ends_is_received():
    assert run_program(
        "class Watched(ForkedChild):\n"
        "    def _reap(self, pid, _options):\n"
        "        while not self._connection.poll(1): pass\n"
        "        return super()._reap(pid, 0)\n"
        "child = Watched()\n"
        "child.start(lambda c: (time.sleep(0.2), c.send('late')), seconds=30)\n"
        "print(list(child.receive()))\n"
    ) == ["['late']"]


def test_one_that_ends_before_it_was_seen_to_begin_is_received():
    assert run_program(
        "from mcp_notebook.kernel.fork import forked_child\n"
        "forked_child._FIRST_LOOK = 0\n"
        "class Watched(ForkedChild):\n"
        "    def _reap(self, pid, _options):\n"
        "        return super()._reap(pid, 0)\n"
        "child = Watched()\n"
        "child.start(lambda c: c.send('soon'), seconds=30)\n"
        "print(list(child.receive()))\n"
    ) == ["['soon']"]


def test_it_shares_no_socket_no_standard_stream_and_no_handler_with_its_kernel():
    assert run_program(
        "ours, theirs = socket.socketpair()\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "def work(c):\n"
        "    os.write(1, b'lost'), os.write(theirs.fileno(), b'lost')\n"
        "    c.send([signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, os.read(0, 1)])\n"
        "print(run(work))\n"
        "ours.setblocking(False)\n"
        "try: ours.recv(4)\n"
        "except BlockingIOError: print('nothing came')\n"
    ) == ["([[True, b'']], 0)", "nothing came"]


def test_one_whose_kernel_is_gone_is_ended():
    ours, theirs = socket.socketpair()
    with ours:
        kernel = subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM + "def work(c):\n"
                "    c.send(os.getpid())\n    time.sleep(600)\n"
                "child = ForkedChild()\nchild.start(work, seconds=600)\n"
                "print(next(child.receive()), flush=True)\ntime.sleep(600)\n",
            ],
            stdout=theirs,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        child = int(ours.makefile().readline())
        kernel.kill()
        kernel.wait()
        wait_for_ends([child])


def test_one_whose_time_limit_nobody_keeps_is_ended_by_the_system():
    assert run_program(
        "from mcp_notebook.kernel.fork import forked_child\n"
        "forked_child._LATE = 0.1\n"
        "print(run(lambda c: sum(range(10**15)), seconds=0.1))\n"
    ) == ["([], -14)"]


def test_one_that_is_interrupted_cleans_up_or_is_ended():
    assert run_program(
        "def work(c):\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    try: c.send('ready'), time.sleep(60)\n"
        "    except KeyboardInterrupt: c.send('tidy')\n"
        "    sum(range(10**15))\n"
        "child = ForkedChild()\nchild.start(work, seconds=60)\n"
        "for message in child.receive():\n"
        "    print(message)\n    if message == 'ready': child.interrupt()\n"
        "child.close()\nprint(child.status)\n"
    ) == ["ready", "tidy", "-9"]


def test_a_signal_that_comes_while_it_is_made_is_not_handled_as_in_the_kernel():
    """The first code that runs in it is that of libraries, which the signal would interrupt."""
    assert run_program(
        "def interrupt():\n"
        "    os.kill(os.getpid(), signal.SIGWINCH), os.kill(os.getpid(), signal.SIGINT)\n"
        "    sum(range(1000))\n"
        "heard = []\n"
        "signal.signal(signal.SIGWINCH, lambda *_: heard.append(os.getpid()))\n"
        "os.register_at_fork(after_in_child=interrupt)\n"
        "def work(c):\n"
        "    c.send(heard)\n"
        "    c.send(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))\n"
        "kernel_blocks = signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "print(run(work))\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []) == kernel_blocks, heard)\n"
    ) == ["([[], []], 0)", "True []"]


@pytest.mark.parametrize("function", ["_live", "leave_kernel", "fork_process"])
def test_whatever_fails_in_it_only_the_kernel_goes_on(function):
    assert run_program(
        "from mcp_notebook.kernel.fork import forked_child\n"
        "kernel = os.getpid()\n"
        f"original = forked_child.{function}\n"
        "def fail(*args, **options):\n"
        "    pid = original(*args, **options) if original.__name__ == 'fork_process' else 0\n"
        "    if pid == 0: raise KeyboardInterrupt\n"
        "    return pid\n"
        f"forked_child.{function} = fail\n"
        "try: ended = run(lambda c: c.send('ran'))\n"
        "finally: os.write(1, b'' if os.getpid() == kernel else b'a second kernel')\n"
        "print(ended)\n"
    ) == ["([], 70)"]
