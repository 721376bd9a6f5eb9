"""Tasks that a tool starts on the kernel's loop, kept from ending it.

Runs in the user's kernel, on its main loop. asyncio lets a SystemExit or KeyboardInterrupt that
leaves a task end the loop, and with it the kernel. Each step of a task is also told to who wants to
know (`kernel.pyplot`). Which tasks are a call's is known to `kernel.capture`.
"""

import inspect
from collections.abc import Coroutine, Generator
from contextlib import AbstractContextManager
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.texts import safe_message


def guarded(coroutine: Any, step: AbstractContextManager[Any]) -> Any:
    """Return a coroutine that does the same, but raises nothing that ends the loop.

    Args:
        coroutine: What a task is made of.
        step: Entered for each stretch that it runs without giving way.
    """
    return _Guarded(coroutine, step) if inspect.iscoroutine(coroutine) else coroutine


class _Guarded(Coroutine[Any, Any, Any]):
    """A coroutine around another one.

    Not an ``async def``: cancelled before its first step, that would never start the inner one, and
    Python would warn about it.
    """

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], step: AbstractContextManager[Any]
    ) -> None:
        self._coroutine = coroutine
        self._step = step

    def send(self, value: Any) -> Any:
        try:
            with self._step:
                return self._coroutine.send(value)
        except (KeyboardInterrupt, SystemExit) as error:
            raise _ended(error) from error

    def throw(self, *error: Any) -> Any:
        try:
            with self._step:
                return self._coroutine.throw(*error)
        except (KeyboardInterrupt, SystemExit) as raised:
            raise _ended(raised) from raised

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


def _ended(error: BaseException) -> ToolError:
    return ToolError(f"A task that the tool started raised {safe_message(error)}.")
