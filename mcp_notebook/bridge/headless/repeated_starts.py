"""Warns programs that run a whole notebook again for each call.

Some frameworks open a session for each call (LangChain's and LlamaIndex's default), and over stdio
a session is a process: ``mcp-notebook stdio FILE`` then runs all cells before it answers one call.
To explain why that is slow, the third start by one program within minutes prints a warning on
stderr, which such a program shows to its developer.

Runs in a worker thread of the bridge, once, at its start.
"""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mcp_notebook.settings.private_files import (
    lock_private,
    read_private_json,
    write_private_json,
)
from mcp_notebook.text.terminal import print_note

logger = logging.getLogger(__name__)

WINDOW = 600.0
"""Seconds for which starts are counted."""
MANY = 3
"""Starts within `WINDOW` that cause a warning."""
_MAX_STARTS = 1_000


class _Start(Struct, frozen=True):
    program: int
    """PID of the program that started the command."""
    notebooks: list[str]
    at: float


class _Starts(Struct, frozen=True):
    starts: list[_Start]


def warn_of_repeated_starts(home: Path, notebooks: Sequence[Path]) -> None:
    """Count a start, and warn if the same program has started the same notebooks repeatedly.

    Args:
        home: The folder of mcp-notebook's own files.
        notebooks: The notebooks that are run.
    """
    start = _Start(
        program=os.getppid(), notebooks=[str(path.absolute()) for path in notebooks], at=time.time()
    )
    try:
        number = _note_start(home / "stdio-starts.json", start)
    except (OSError, ValueError) as error:  # not essential
        logger.debug("the starts of %s are not noted: %s", start.notebooks, error)
        return
    if number >= MANY:
        names = ", ".join(path.name for path in notebooks)
        print_note(
            f"The same program has started this command {number} times within "
            f"{WINDOW / 60:.0f} minutes, and each time all cells of {names} run again. If it "
            "opens a session for each call, keep one session open (LangChain: `async with "
            "client.session(...)`), or run `mcp-notebook serve` once and connect to its address."
        )


def _note_start(path: Path, start: _Start) -> int:
    """Add a start to a file, and return the number of equal starts within `WINDOW`."""
    with lock_private(path.with_suffix(".lock")):
        starts = [item for item in _read(path) if 0 <= start.at - item.at < WINDOW]
        starts = [*starts, start][-_MAX_STARTS:]
        write_private_json(path, _Starts(starts))
    return sum(
        (item.program, item.notebooks) == (start.program, start.notebooks) for item in starts
    )


def _read(path: Path) -> list[_Start]:
    try:
        return read_private_json(path, _Starts).starts
    except (FileNotFoundError, ValueError):
        return []
