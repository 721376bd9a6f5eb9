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
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat

from mcp_notebook.settings.private_files import read_private, write_private

KEEP = 600.0
"""Seconds for which a missing notebook or tool is explained."""
_SUFFIX = ".gone"
_MAX_LINE = 255
"""Maximum characters of a text in messages, as of a file name in most file systems."""


def _make_printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text[:_MAX_LINE])


Line = Annotated[str, AfterValidator(_make_printable)]
"""A text in messages, on one line; a file name may contain line breaks and escape codes."""


class Departure(BaseModel):
    """A kernel that has left."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    notebook: str | None
    """Path of the notebook; None if the kernel did not know it."""
    first_notebook: str | None = None
    """Its path when the kernel started."""
    name: Line
    """Short name of the notebook."""
    reason: Line | None
    """Why the kernel left, as a sentence; None if it crashed or was killed."""
    at: FiniteFloat
    """When the kernel left, or when this was noticed, in seconds since the epoch."""


def is_recent(at: float) -> bool:
    """Return whether a time, in seconds since the epoch, is within the last `KEEP` seconds."""
    return abs(time.time() - at) < KEEP  # `abs`: the clock may have been set back


def write_departure(folder: Path, departure: Departure) -> None:
    """Write a note that a kernel has left. Does nothing if that fails."""
    key = hashlib.sha256((departure.notebook or departure.name).encode(errors="replace"))
    with contextlib.suppress(OSError):
        list_departures(folder)  # removes the old ones
        write_private(folder / f"{key.hexdigest()[:16]}{_SUFFIX}", departure.model_dump_json())


def list_departures(folder: Path) -> tuple[Departure, ...]:
    """Return the kernels that left recently, latest first, and delete older notes."""
    departures = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix != _SUFFIX:
                continue
            with contextlib.suppress(OSError, ValueError):
                departure = Departure.model_validate_json(read_private(path))
                if is_recent(departure.at):
                    departures.append(departure)
                else:
                    path.unlink()
    return tuple(sorted(departures, key=lambda departure: -departure.at))
