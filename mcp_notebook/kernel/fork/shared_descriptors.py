"""What a copy of the kernel shares with it by descriptors, and how the copy lets go of that.

Runs in the copy, before anything else does. A fork copies numbers, not what they stand for: a
socket of the copy's is the kernel's, the end of a pipe that it keeps open is an end that somebody
waits for, and where it reads in a file, the kernel goes on to read after that.
"""

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

_OPEN_AGAIN = Path("/proc/self/fd")
"""Where Linux opens the file of a descriptor once more; macOS has nothing like it."""
_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_APPEND
"""Of those by which a file was opened, the ones that say what is done with it."""


def let_go_of_descriptors(connection: int) -> None:
    """Share no socket, pipe or terminal with the kernel, and no position in a file.

    Args:
        connection: The descriptor of the connection to the kernel, which stays.
    """
    # Nothing is closed: the number could be given to a file, which those who believe that it is
    # theirs would close or write to.
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        with suppress(OSError):  # the one of the folder
            mode = os.fstat(number).st_mode
            if stat.S_ISREG(mode):
                _open_again(number)
            elif number != connection and _is_talk(number, mode):
                os.dup2(nothing, number, inheritable=False)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _is_talk(number: int, mode: int) -> bool:
    """Return whether somebody at the other end would hear of what is done here."""
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode) or os.isatty(number)


def _open_again(number: int) -> None:
    """Give a descriptor of a file a position of its own, which is where the kernel's is now."""
    flags = fcntl.fcntl(number, fcntl.F_GETFL) & _FLAGS
    copy = os.open(_OPEN_AGAIN / str(number), flags | os.O_CLOEXEC)
    try:
        os.lseek(copy, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(copy, number, inheritable=os.get_inheritable(number))
    finally:
        os.close(copy)
