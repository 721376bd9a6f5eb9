"""Keeps a thread that a call starts with the call, if it runs the notebook's own code.

Runs in the user's kernel, on the thread that starts another one. Python's threads begin without the
context of whoever starts them, so that what they print, and the traceback of one that fails, would
appear below the user's last cell. The threads of libraries (the workers of a pool, a monitor of
progress bars) are left alone: they outlive the call and serve the user's cells as well.
"""

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from mcp_notebook.kernel.safe.interrupter import Shield

_start = threading.Thread.start
_NOTEBOOK = "__main__"


def start_in_context(
    thread: threading.Thread, *, acquire: Callable[[], None], release: Callable[[], None]
) -> None:
    """Start a thread, in the context of the caller if it runs a function of the notebook.

    Args:
        thread: To be started.
        acquire: Keeps what the thread displays away from the user's cells, also after the call.
        release: Undoes that, when the thread ends.
    """
    if thread.ident is not None or not _runs_notebook_code(thread):
        _start(thread)  # which refuses to start a thread twice
        return
    context = contextvars.copy_context()
    patched_run = vars(thread).get("run")  # by a debugger or profiler, say

    def restore_run() -> None:
        if patched_run is None:
            vars(thread).pop("run", None)  # no cycle is left
        else:
            thread.run = patched_run  # type: ignore[method-assign]

    def run() -> None:
        restore_run()
        try:
            context.run(thread.run)
        except BaseException as error:  # noqa: BLE001 - `Thread` does so, outside of the context
            trace = error.__traceback__ and error.__traceback__.tb_next  # without this frame
            error.__traceback__ = trace
            failure = threading.ExceptHookArgs((type(error), error, trace, thread))
            context.run(threading.excepthook, failure)
        finally:
            release()

    with Shield():
        acquire()
        thread.run = run  # type: ignore[method-assign]
        try:
            _start(thread)
        except RuntimeError:  # the system gives no more threads
            restore_run()
            release()
            raise


def _runs_notebook_code(thread: threading.Thread) -> bool:
    function: Any = getattr(thread, "_target", None)
    if isinstance(thread, threading.Timer):
        function = thread.function
    while isinstance(function, partial):
        function = function.func
    owner = type(thread).run if function is None else function
    return getattr(owner, "__module__", None) == _NOTEBOOK
