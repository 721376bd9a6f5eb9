"""Notes on kernels that have left, kept for some minutes beside the records.

A kernel that leaves removes its record, and a bridge that finds a dead one's removes it, too. The
note says what became of the notebook to those who look afterwards: ``mcp-notebook list``,
``mcp-notebook call``, and the clients of bridges that call an unknown tool. One note per notebook,
the latest. Runs in every process; contacts none.
"""

import contextlib
import hashlib
import time
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat

from mcp_notebook.settings.private_files import read_private, write_private

KEEP = 600.0
"""Seconds for which people are told what became of a notebook or a tool that was there."""
_SUFFIX = ".gone"
_MAX_LINE = 255
"""Characters of a text for messages; the names of files are as long in most file systems."""


def _make_printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text[:_MAX_LINE])


Line = Annotated[str, AfterValidator(_make_printable)]
"""A text for messages, in one line; a file's name may have line breaks and colours in it."""


class Departure(BaseModel):
    """A kernel that has left."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    notebook: str | None
    """Path of the notebook, if the kernel knew it."""
    first_notebook: str | None = None
    """Its path when the kernel started."""
    name: Line
    """Short name of the notebook."""
    reason: Line | None
    """Why the kernel left, as a sentence; None if it crashed or was killed."""
    at: FiniteFloat
    """When that happened or was noticed, in seconds since the epoch."""


def is_recent(at: float) -> bool:
    """Tell whether what happened at this time is still told; in seconds since the epoch."""
    return abs(time.time() - at) < KEEP  # a clock may have been set


def write_departure(folder: Path, departure: Departure) -> None:
    """Note that a kernel has left; does nothing if that cannot be written."""
    key = hashlib.sha256((departure.notebook or departure.name).encode(errors="replace"))
    with contextlib.suppress(OSError):
        list_departures(folder)  # removes the old ones
        write_private(folder / f"{key.hexdigest()[:16]}{_SUFFIX}", departure.model_dump_json())


def list_departures(folder: Path) -> tuple[Departure, ...]:
    """Return the kernels that left in the last minutes, latest first, and forget earlier ones."""
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
