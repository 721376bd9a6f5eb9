"""Stands between a client and a bridge over stdio: every message of the bridge is one of MCP's.

`judge_settings` puts it into a client's settings, and run as a program, this file is it. All lines
pass as they come, in both directions; `judge` says how they are judged, and what is wrong is
written to a file, as a client may end the program at any time. Uses a thread for each direction.
"""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import join
from threading import Lock, Thread
from typing import IO

from judge import Judge
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

FAILURES = "not-messages-of-mcp"
"""The file with what is wrong, in the home folder."""


def judge_words(home: Path, command: Sequence[str]) -> list[str]:
    """Return the words that run a command through this program; `check_judged` tells the rest."""
    return [sys.executable, __file__, str(home / FAILURES), *command]


def judge_settings(home: Path) -> None:
    """Let the clients whose settings are in a home folder start bridges through this program."""
    program = home / "judged-python"
    run = join(judge_words(home, [sys.executable]))
    program.write_text(f'#!/bin/sh\nexec {run} "$@"\n', "utf-8")
    program.chmod(0o755)
    changed = 0
    for file in home.rglob("*"):
        if file != program and file.is_file():
            text = file.read_text("utf-8", "replace")
            if sys.executable in text and "stdio" in text:
                file.write_text(text.replace(sys.executable, str(program)), "utf-8")
                changed += 1
    assert changed, f"no settings with {sys.executable} below {home}"


def check_judged(home: Path) -> None:
    """Fail if a client of this home folder got what is not a message of MCP."""
    with suppress(FileNotFoundError):
        raise AssertionError((home / FAILURES).read_text("utf-8"))


def run_judged(failures: Path, command: Sequence[str]) -> int:
    """Run a command between this process's input and output, and return its exit status."""
    judge, lock = Judge(), Lock()

    def note(line: bytes) -> None:
        with lock, suppress(ValidationError):  # what the client sends is not judged
            judge.note(jsonrpc_message_adapter.validate_json(line, by_name=False))

    def check(line: bytes) -> None:
        try:
            with lock:
                judge.check(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except Exception as error:  # noqa: BLE001 - told at the end, whatever it is
            with failures.open("a", encoding="utf-8") as file:
                file.write(f"{type(error).__name__}: {error}\nreceived: {line[:2_000]!r}\n")

    def hear_client(bridge: IO[bytes]) -> None:
        with suppress(OSError), bridge:
            for line in sys.stdin.buffer:
                note(line)
                bridge.write(line)
                bridge.flush()

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        Thread(target=hear_client, args=[process.stdin], daemon=True).start()
        for line in process.stdout:
            check(line)
            with suppress(OSError):  # the client has gone
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
    return process.returncode


if __name__ == "__main__":
    sys.exit(run_judged(Path(sys.argv[1]), sys.argv[2:]))
