"""Runs the commands of ``!command`` and ``%pip`` where nobody can answer what they ask.

Runs in the user's kernel: in calls, on the thread of the call, and in the cells of headless
notebooks. IPython gives each command a terminal of its own, on which a command that asks waits for
ever. Here its input is empty, and it has no terminal that it could ask on.
"""

import codecs
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from ipykernel import zmqshell
from IPython.core import interactiveshell

MODULES: tuple[Any, ...] = (interactiveshell, zmqshell)
"""Where IPython's ``system`` stands."""
_LOOK = 0.1
"""Seconds between two checks of whether the command has ended: what it has started in the
background may keep its output open."""
_GRACE = 1.0
"""Seconds between the interrupt of a command and its end by SIGKILL."""
_MAX_READ = 65_536
_BY_SIGNAL = 128
"""Exit codes of a shell beyond this one name a signal."""


def run_without_input(command: str) -> int:
    """Run a command and print its output, as IPython's ``system`` does.

    Args:
        command: For the user's shell.

    Returns:
        Its exit code; negative: the signal that has ended it.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended.
    """
    process = subprocess.Popen(  # noqa: S602 - the author's own command
        command,
        shell=True,
        executable=os.environ.get("SHELL") if os.name == "posix" else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _print_output(process)
        code = process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        assert process.stdout is not None
        process.stdout.close()
    return _BY_SIGNAL - code if code > _BY_SIGNAL else code


def _print_output(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdout is not None
    output = process.stdout.fileno()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    data = b" "
    while data:
        has_ended = process.poll() is not None
        if os.name == "posix" and not select.select([output], [], [], 0 if has_ended else _LOOK)[0]:
            if has_ended:
                return
            continue
        data = os.read(output, _MAX_READ)
        sys.stdout.write(decoder.decode(data, final=not data))
        sys.stdout.flush()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a command that was interrupted, and what it has started."""
    if os.name != "posix":
        process.kill()
        return
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(OSError):  # it has ended
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


def empty_input() -> None:
    """Run all commands of this process so, since it has no user who could answer."""
    for module in MODULES:
        module.system = run_without_input
