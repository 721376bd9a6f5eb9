"""A terminal for an assistant that has a screen: the test types, and waits for what appears."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stand_in import PATIENCE

_SIZE = struct.pack("HHHH", 45, 130, 0, 0)
_CONTROL = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")


class Terminal:
    """What a program writes to a terminal, as text in the order in which it was written.

    Args:
        fd: The terminal's end that the test has.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._seen = ""

    def type(self, keys: str) -> None:
        """Press keys; what has been written before no longer counts."""
        self._seen = ""
        os.write(self._fd, keys.encode())

    def wait_for(self, *texts: str) -> None:
        """Wait until these have been written since the last key; spaces do not count.

        A program writes only what differs from what the screen shows in that place.
        """
        deadline = time.monotonic() + PATIENCE
        while not all(text.replace(" ", "") in self._read_text() for text in texts):
            assert time.monotonic() < deadline, f"no {texts} in {self._seen[-2000:]}"
            if select.select([self._fd], [], [], 1)[0]:
                self._seen += os.read(self._fd, 2**16).decode("utf-8", "replace")

    def _read_text(self) -> str:
        # A program moves the cursor instead of writing spaces.
        return _CONTROL.sub("", self._seen).replace(" ", "")


@contextmanager
def in_terminal(command: Sequence[str], folder: Path, env: dict[str, str]) -> Iterator[Terminal]:
    """Run a program in a terminal, and end it."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.chdir(folder)
            os.execvpe(command[0], command, env | {"TERM": "xterm-256color"})
        finally:
            os._exit(1)
    try:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, _SIZE)
        yield Terminal(fd)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)
