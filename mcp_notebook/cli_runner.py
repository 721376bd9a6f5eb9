"""How a command runs what it imports: on the fastest event loop there is, until a signal.

Tested in ``tests/test_cli.py``. Runs in the process of the command.
"""

import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, TypeVar

from mcp_notebook.termination import list_termination_signals

T = TypeVar("T")


def run_command(function: Callable[..., Awaitable[T]], *args: Any, **keywords: Any) -> T:
    """Run a coroutine function to its end, on the fastest event loop available.

    SIGTERM and SIGHUP cancel it, so that no headless kernel is left behind; bridges take these
    signals themselves. Python's handler of SIGINT would not do: ``command &`` in a script ignores
    SIGINT.
    """
    import asyncio  # noqa: PLC0415

    import anyio  # noqa: PLC0415

    async def run() -> T:
        with anyio.CancelScope() as scope:
            with suppress(NotImplementedError):  # Windows has no such signals
                for number in list_termination_signals():
                    asyncio.get_running_loop().add_signal_handler(number, scope.cancel)
            return await function(*args, **keywords)
        raise _Terminated

    uvloop = find_spec("uvloop") is not None
    try:
        return anyio.run(run, backend_options={"use_uvloop": uvloop})
    except _Terminated:
        raise KeyboardInterrupt from None
    finally:
        # The interpreter's last collections would look through all that a bridge's clients have
        # left, for seconds after thousands of them.
        gc.freeze()


class _Terminated(Exception):
    """A signal ended the command."""
