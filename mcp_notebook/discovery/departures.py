"""Notes about kernels that have left, kept for ten minutes beside the records.

A kernel removes its record when it leaves; a bridge removes the record of a dead kernel. The note
tells ``mcp-notebook list``, ``mcp-notebook call`` and clients that call a missing tool what became
of the notebook. Each notebook has at most one note, the latest. Runs in every process; contacts no
other process.
"""

import contextlib
import hashlib
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import force_setattr

from mcp_notebook.settings.private_files import read_private_json, write_private_json

KEEP = 600.0
"""Seconds for which a missing notebook or tool is explained."""
_SUFFIX = ".gone"
_MAX_LINE = 255
"""Maximum characters of a text in messages, as of a file name in most file systems."""


def make_printable(struct: Struct, *names: str) -> None:
    """Limit texts of a new struct to one printable line.

    A file name may contain line breaks and escape codes, and these texts are parts of messages.
    """
    for name in names:
        text = getattr(struct, name)
        if text is not None and not (text.isprintable() and len(text) <= _MAX_LINE):
            line = "".join(letter if letter.isprintable() else "?" for letter in text[:_MAX_LINE])
            force_setattr(struct, name, line)


class Departure(Struct, frozen=True):
    """A kernel that has left."""

    notebook: str | None
    """Path of the notebook; None if the kernel did not know it."""
    name: str
    """Short name of the notebook, on one line."""
    reason: str | None
    """Why the kernel left, as a sentence; None if it crashed or was killed."""
    at: float
    """When the kernel left, or when this was noticed, in seconds since the epoch."""
    first_notebook: str | None = None
    """Its path when the kernel started."""

    def __post_init__(self) -> None:
        make_printable(self, "name", "reason")


def is_recent(at: float) -> bool:
    """Return whether a time, in seconds since the epoch, is within the last `KEEP` seconds."""
    return abs(time.time() - at) < KEEP  # `abs`: the clock may have been set back


def write_departure(folder: Path, departure: Departure) -> None:
    """Write a note that a kernel has left. Does nothing if that fails."""
    key = hashlib.sha256((departure.notebook or departure.name).encode(errors="replace"))
    with contextlib.suppress(OSError):
        list_departures(folder)  # removes the old ones
        write_private_json(folder / f"{key.hexdigest()[:16]}{_SUFFIX}", departure)


def list_departures(folder: Path) -> tuple[Departure, ...]:
    """Return the kernels that left recently, latest first, and delete older notes."""
    departures = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix != _SUFFIX:
                continue
            with contextlib.suppress(OSError, ValueError):
                departure = read_private_json(path, Departure)
                if is_recent(departure.at):
                    departures.append(departure)
                else:
                    path.unlink()
    return tuple(sorted(departures, key=lambda departure: -departure.at))
