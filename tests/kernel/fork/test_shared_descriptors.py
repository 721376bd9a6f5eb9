"""What a copy of a process lets go of, seen from the process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are opened again on Linux")

PROGRAM = """
import os, socket, tempfile
from mcp_notebook.kernel.fork.forked_child import detach_descriptors

def in_copy(work, kept=-1):
    pid = os.fork()
    if pid == 0:
        detach_descriptors(kept)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run_program(code):
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split("\n")[:-1]


def test_files_are_read_and_written_from_where_the_process_is_and_it_stays_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("abcdef", encoding="utf-8")
    assert run_program(
        f"file = os.open({str(path)!r}, os.O_RDWR)\nos.read(file, 2)\n"
        "print(in_copy(lambda: os.write(file, b'XY')))\n"
        "print(os.read(file, 9))\n"
        "with tempfile.TemporaryFile(buffering=0) as nameless:\n"
        "    nameless.write(b'123'), nameless.seek(1)\n"
        "    print(in_copy(lambda: nameless.read()), nameless.read())\n"
    ) == ["0", "b'XYef'", "0 b'23'"]


def test_nothing_is_sent_by_pipes_sockets_and_terminals_but_the_one_that_is_kept():
    assert run_program(
        "ours, theirs = socket.socketpair()\n"
        "reading, writing = os.pipe()\n"
        "here, terminal = os.openpty()\n"
        "kept, keeps = socket.socketpair()\n"
        "def work():\n"
        "    for number in (theirs.fileno(), writing, terminal, keeps.fileno(), 1, 2):\n"
        "        os.write(number, b'from the copy')\n"
        "print(in_copy(work, keeps.fileno()), kept.recv(99))\n"
        "for number in (ours.fileno(), reading, here):\n"
        "    os.set_blocking(number, False)\n"
        "    try: print(os.read(number, 99))\n"
        "    except BlockingIOError: print('nothing')\n"
    ) == ["0 b'from the copy'", "nothing", "nothing", "nothing"]
