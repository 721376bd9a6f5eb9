"""A hash of a tool's source: the same one as long as its code is, whatever happens to its data.

Runs in the user's kernel, on any thread. The text comes from ``linecache``, where IPython keeps the
cells, or from the function's file.
"""

import inspect
import linecache
from collections.abc import Callable
from hashlib import sha256
from types import FunctionType
from typing import Any

_CELL = "%%mcp_tool"


def hash_source(function: Callable[..., Any]) -> str | None:
    """Return the SHA-256 of a function's source, as hexadecimal digits; None if it has none.

    Args:
        function: What a tool's calls run.
    """
    try:
        text = _read_cell(function) or inspect.getsource(inspect.unwrap(function))
    except Exception:  # noqa: BLE001 - a builtin or an instance has none; a proxy may raise anything
        return None
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _read_cell(function: Callable[..., Any]) -> str | None:
    """Return the cell that is a tool as a whole, without any ``def``: all of it is the function."""
    if not isinstance(function, FunctionType) or function.__code__.co_firstlineno != 1:
        return None
    lines = linecache.getlines(function.__code__.co_filename)
    return "".join(lines) if lines and lines[0].startswith(_CELL) else None
