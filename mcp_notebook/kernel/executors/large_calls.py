"""What makes a call to a worker large: the variables of the notebook that its function uses.

Runs in the user's kernel, on the thread of the call.
"""

from collections.abc import Callable
from typing import Any

from mcp_notebook.kernel.executors.pickling import dump, list_variables

MUCH = 10_000_000
"""Bytes: calls that carry more are told of."""
_SHARE = 0.1
"""Of the call's bytes; variables that take less are not named."""


def find_large_parts(
    function: Callable[..., Any], arguments: dict[str, Any], size: int
) -> tuple[str, str | None]:
    """Find what makes a call large.

    Args:
        function: The tool's.
        arguments: Of the function.
        size: Bytes of the call.

    Returns:
        The names of what is large, with their sizes, and the name of the largest variable; None if
        it is no variable of the notebook.
    """
    variables = list_variables(function)
    data = {name: value for name, value in variables.items() if not callable(value)}
    sizes = {name: _measure(value) for name, value in data.items()}
    large = sorted((n for n in sizes if sizes[n] > _SHARE * size), key=lambda n: -sizes[n])
    parts = [f"the variable {name!r} ({format_size(sizes[name])})" for name in large]
    for name, value in arguments.items():
        if (its_size := _measure(value)) > _SHARE * size:
            parts.append(f"the argument {name!r} ({format_size(its_size)})")
    return " and ".join(parts) or "many small values", large[0] if large else None


def format_size(size: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{size / 1e6:,.0f} MB"


def _measure(value: Any) -> int:
    try:
        return len(dump(value))
    except Exception:  # noqa: BLE001 - pickling runs the values' code
        return 0
