"""A warning for programs that run a whole notebook anew for each call.

Some frameworks open a session for each call (LangChain's and LlamaIndex's default), and over stdio
a session is a process: ``mcp-notebook stdio FILE`` then runs all cells before it answers one call.
Nobody would see why it is slow, so the third start by one program within minutes says so on stderr,
which such a program shows its developer.

Runs in a worker thread of the bridge, once, at its start.
"""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mcp_notebook.settings.private_files import lock_private, read_private, write_private
from mcp_notebook.text.terminal import print_note

logger = logging.getLogger(__name__)

WINDOW = 600.0
"""Seconds for which a start is remembered."""
MANY = 3
"""Starts within these that are worth a warning."""
_MAX_STARTS = 1_000


class _Start(BaseModel):
    program: int
    """Process id of the program that started the command."""
    notebooks: list[str]
    at: float


class _Starts(BaseModel):
    starts: list[_Start] = []


def warn_of_repeated_starts(home: Path, notebooks: Sequence[Path]) -> None:
    """Note that notebooks are run for one client, and say so if that program does it repeatedly.

    Args:
        home: The folder of mcp-notebook's own files.
        notebooks: Those that are run.
    """
    start = _Start(
        program=os.getppid(), notebooks=[str(path.absolute()) for path in notebooks], at=time.time()
    )
    try:
        number = _note_start(home / "stdio-starts.json", start)
    except (OSError, ValueError) as error:  # nothing that the client needs
        logger.debug("the starts of %s are not noted: %s", start.notebooks, error)
        return
    if number >= MANY:
        names = ", ".join(path.name for path in notebooks)
        print_note(
            f"The same program has started this command {number} times within "
            f"{WINDOW / 60:.0f} minutes, and each time all cells of {names} run anew. If it opens "
            "a session for each call, let it keep one open (LangChain: `async with "
            "client.session(...)`), or run `mcp-notebook serve` once and connect to its address."
        )


def _note_start(path: Path, start: _Start) -> int:
    """Note a start in a file, and return how many like it there were lately, with this one."""
    with lock_private(path.with_suffix(".lock")):
        starts = [item for item in _read(path) if 0 <= start.at - item.at < WINDOW]
        starts = [*starts, start][-_MAX_STARTS:]
        write_private(path, _Starts(starts=starts).model_dump_json())
    return sum(
        (item.program, item.notebooks) == (start.program, start.notebooks) for item in starts
    )


def _read(path: Path) -> list[_Start]:
    try:
        return _Starts.model_validate_json(read_private(path)).starts
    except (FileNotFoundError, ValidationError):
        return []
