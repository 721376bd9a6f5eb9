"""Guards around the tasks that a tool starts on the kernel's loop.

Runs in the user's kernel, on its main loop. asyncio lets a SystemExit or KeyboardInterrupt that
leaves a task end the loop, and with it the kernel: a guarded task raises something else. And a task
that does not give way holds the kernel as a sync tool does: each of its steps can be interrupted.
`capture` puts the guards around the tasks of calls.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.interrupts import InterruptGate
from mcp_notebook.kernel.safe.text import describe_error


class Steps:
    """The steps of one call's tasks, of which one runs at a time."""

    def __init__(self) -> None:
        self._gate: InterruptGate | None = None
        self._interrupted = False

    @property
    def interrupted(self) -> bool:
        """Whether a SIGINT came during a step, also the one that runs now."""
        return self._interrupted or (self._gate is not None and self._gate.interrupted)

    def run(self, step: Callable[..., Any], *args: Any) -> Any:
        """Run a step; on the main thread.

        Raises:
            KeyboardInterrupt: It was interrupted.
        """
        outer, self._gate = self._gate, InterruptGate()  # a tool may run a loop within the loop
        try:
            with self._gate as gate:
                try:
                    gate.open()
                    return step(*args)
                finally:
                    gate.close()
        finally:
            self._interrupted = self._interrupted or gate.interrupted
            self._gate = outer

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the step that runs now, from another thread.

        Returns:
            Whether one ran.
        """
        gate = self._gate
        return gate is not None and gate.interrupt()


def guard_coroutine(coroutine: Any, steps: Steps) -> Any:
    """Return a coroutine that does the same, but raises nothing that ends the loop.

    Args:
        coroutine: What a task is made of.
        steps: Those of its call.
    """
    return _Guarded(coroutine, steps) if inspect.iscoroutine(coroutine) else coroutine


class _Guarded(Coroutine[Any, Any, Any]):
    """A coroutine around another one.

    Not an ``async def``: cancelled before its first step, that would never start the inner one, and
    Python would warn about it.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._coroutine = coroutine
        self._steps = steps

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        try:
            try:
                return self._steps.run(step, *args)
            except KeyboardInterrupt as error:
                if inspect.getcoroutinestate(self._coroutine) != inspect.CORO_SUSPENDED:
                    raise
                # It came when the step had just ended, and what it waits for is lost.
                return self._coroutine.throw(error)
        except (KeyboardInterrupt, SystemExit) as error:
            if isinstance(error, KeyboardInterrupt) and self._steps.interrupted:
                raise asyncio.CancelledError from error
            raise _make_tool_error(error) from error

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


def _make_tool_error(error: BaseException) -> ToolError:
    return ToolError(f"A task that the tool started raised {describe_error(error)}.")
