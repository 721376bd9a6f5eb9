"""The one guard around code that is not ours: reprs, display methods, serializers, libraries.

Runs in the user's kernel, on the thread of the call. Such code may raise anything, SystemExit and
its own BaseExceptions included, and none of it may reach the kernel's event loop. Only a
KeyboardInterrupt goes on: by it the user or the client stops the call. How long such code may take
is bounded by `kernel.safe.deadline`.
"""

from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def run_guarded(
    function: Callable[[], _Result], recover: Callable[[BaseException], _Result]
) -> _Result:
    """Run foreign code, and turn whatever it raises into another result.

    Args:
        function: Runs the code.
        recover: Gets what was raised, and returns what stands in its place.

    Raises:
        KeyboardInterrupt: The call was stopped.
    """
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return recover(error)
