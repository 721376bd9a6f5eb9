"""How deep and how many the values among a call's arguments may be.

Runs on the bridge's event loop. A kernel needs 25 times the memory for `[[],[],...]` that
its text takes, and time that its user notices, so arguments are measured before they are sent:
small ones as they were parsed, large ones in their text, in slices between which the loop does
other work. That an argument is of the right type is the business of the kernel.
"""

from typing import Any

from mcp_notebook.bridge.protocol.json_spans import measure_value
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.settings.limits import Limits


async def check_arguments(arguments: dict[str, Any] | bytes, limits: Limits) -> None:
    """Check the arguments of a call.

    Args:
        arguments: The arguments; if large, as the client's JSON.
        limits: `max_argument_depth` and `max_argument_values`. An empty array or object counts as
            two values: this is how it is counted in the text.

    Raises:
        InvalidArguments: They are nested too deep, or too many.
    """
    most = limits.max_argument_values
    if isinstance(arguments, bytes):
        depth, count = await measure_value(arguments, enough=most)
    else:
        depth, count = _measure(arguments, limits)
    if depth > limits.max_argument_depth:
        raise InvalidArguments(
            "The arguments are nested too deep: at most "
            f"{limits.max_argument_depth:,} levels of arrays and objects are taken."
        )
    if count > most:
        raise InvalidArguments(
            f"The arguments are too many: at most {most:,} values and names are taken in one call. "
            "Send less at once."
        )


def _measure(arguments: dict[str, Any], limits: Limits) -> tuple[int, int]:
    """Return depth and number of the values, or what is beyond a limit already."""
    depth = count = 0
    level: list[Any] = [arguments]
    while level and depth <= limits.max_argument_depth and count <= limits.max_argument_values:
        depth += 1
        deeper: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                count += max(2 * len(container), 1)
                values: Any = container.values()
            else:
                count += max(len(container), 1)
                values = container
            deeper += [value for value in values if isinstance(value, dict | list)]
        level = deeper
    return depth, count
