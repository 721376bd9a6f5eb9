"""Runs a command on an event loop, and ends it with an exit status.

Runs in the process of the command. Imports neither pydantic nor typer: ``mcp-notebook stdio`` and
``serve`` without options come here directly from `__main__`.
"""

import gc
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from mcp_notebook.errors import McpNotebookError, NoHomeFolder
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import format_logs, print_note

T = TypeVar("T")
_INTERRUPTED = 130
"""The exit status that shells use."""


def run_command(function: Callable[..., Awaitable[T]], *args: Any, **keywords: Any) -> T:
    """Run a coroutine function to its end, on the fastest event loop available.

    SIGTERM and SIGHUP cancel it, so that no headless kernel is left behind; bridges handle these
    signals themselves. Handling SIGINT would not be enough: ``command &`` in a script ignores it.
    """
    import anyio

    from mcp_notebook.termination import handle_signals, list_termination_signals

    async def run() -> T:
        with anyio.CancelScope() as scope:
            with handle_signals(list_termination_signals(), lambda _: scope.cancel()):
                return await function(*args, **keywords)
        raise _Terminated

    uvloop = find_spec("uvloop") is not None
    try:
        return anyio.run(run, backend_options={"use_uvloop": uvloop})
    except _Terminated:
        raise KeyboardInterrupt from None
    finally:
        # After thousands of clients, the interpreter's final garbage collections take seconds.
        gc.freeze()


def run_stdio_bridge(settings: Settings, notebooks: Sequence[Path]) -> None:
    """Become the bridge of the client that has started this process."""
    if os.isatty(0):
        print_note(
            "This command is started by an MCP client, which talks to it over stdin and stdout. "
            "Press Ctrl-C to stop it; `mcp-notebook list` shows the tools."
        )
    from mcp_notebook.bridge.start import start_stdio

    run_command(start_stdio, settings, notebooks)


def run_http_bridge(
    settings: Settings, notebooks: Sequence[Path], *, background: bool = False
) -> None:
    """Become a bridge for clients over HTTP."""
    from mcp_notebook.bridge.start import start_http

    run_command(start_http, settings, notebooks, background=background)


@contextmanager
def exit_with_messages(status: int = 1) -> Iterator[None]:
    """Run a command in the block. If it fails, print why and exit; with 130 if interrupted.

    Args:
        status: The exit status of a failure.
    """
    failed = False
    format_logs()
    try:
        try:
            yield
        except RuntimeError:  # of `Path.home`, here or in Jupyter's libraries
            if os.path.expanduser("~") == "~":  # noqa: PTH111 - does not raise
                raise NoHomeFolder from None
            raise
        finally:
            sys.stdout.flush()  # so that a closed pipe raises here and not at exit
    # Task groups wrap errors in groups, which may be nested.
    except* McpNotebookError as group:
        failed = True
        print_note("\n".join(dict.fromkeys(_list_messages(group))))
    except* BrokenPipeError:
        failed = True
        # The interpreter flushes stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except* KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    if failed:
        sys.exit(status)


def _list_messages(group: BaseExceptionGroup[Any]) -> Iterator[str]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _list_messages(error)
        else:
            yield str(error)


class _Terminated(Exception):
    """A signal ended the command."""
