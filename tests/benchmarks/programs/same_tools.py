"""The tools that every server of the comparison serves: the same functions, the same data.

Imported by the programs beside it, each in an environment of its own, and by the notebook's kernel.
"""

import struct
import zlib
from functools import cache
from random import Random
from typing import Any

MB = 2**20


@cache
def png(side: int) -> bytes:
    """Return a picture of noise, `3 * side**2` bytes that cannot be packed any smaller."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    noise = Random(0)
    rows = b"".join(b"\0" + noise.randbytes(3 * side) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


SIDE = 417
"""Of a picture of 500 KB: as much as mcp-notebook sends without compressing it."""


@cache
def table() -> Any:
    """Return a frame of pandas, about 1 MB as JSON."""
    import pandas as pd  # noqa: PLC0415 - a server's start is measured, too

    rows = range(17_000)
    regions, revenue = [f"Region {i % 7}" for i in rows], [i * 1.25 for i in rows]
    return pd.DataFrame({"order": rows, "region": regions, "revenue": revenue})


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def length(text: str) -> int:
    """Count the characters of a text."""
    return len(text)


def ask(about: str) -> str:
    """Ask for a report."""
    return f"Write a report about {about}."


def document() -> str:
    """Return a short document."""
    return "The figures of this year."


def fillers(number: int) -> list:
    """Return so many tools that nobody calls, with the parameters of a usual one."""
    tools = []
    for i in range(number):

        def tool(region: str, year: int = 2012, ratio: float | None = None) -> str:
            return f"{region} {year} {ratio}"

        tool.__name__ = tool.__qualname__ = f"report_{i}"
        tool.__doc__ = (
            f"Write report {i}: the customers with the highest revenue of a region in a year, with "
            "what they bought and what has changed since the year before."
        )
        tools.append(tool)
    return tools
