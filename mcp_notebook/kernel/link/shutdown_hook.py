"""Calls a function before the kernel is shut down or restarted.

Runs in the user's kernel: the hook is installed and removed on its main thread, and called on its
control thread.
"""

import logging
from collections.abc import Callable
from typing import Any

from mcp_notebook.kernel.safe.replacement import replace_attribute

logger = logging.getLogger(__name__)


class ShutdownHook:
    """Calls a function before the kernel is shut down or restarted on the user's request.

    ipykernel calls the kernel's `do_shutdown` on its control thread, even while the main thread is
    busy. An exit handler would run only after the main thread has finished its work.

    Args:
        kernel: IPython's kernel.
        before_shutdown: Called on the control thread, with whether it is a restart.
    """

    def __init__(self, kernel: Any, before_shutdown: Callable[[bool], None]) -> None:
        self._kernel = kernel
        self._before_shutdown = before_shutdown
        self._original: Callable[[bool], Any] | None = None
        self._undo: Callable[[], None] = lambda: None

    def install(self) -> None:
        """Install the hook."""
        self._original = self._kernel.do_shutdown
        self._undo = replace_attribute(self._kernel, "do_shutdown", self._do_shutdown)

    def remove(self) -> None:
        """Remove the hook; if it was wrapped by other code, it only passes calls on."""
        self._undo()
        self._before_shutdown = lambda _restart: None

    def _do_shutdown(self, restart: bool) -> Any:  # noqa: FBT001 - as ipykernel calls it
        try:
            self._before_shutdown(restart)
        except Exception:
            logger.exception("bridges could not be notified of the shutdown")
        assert self._original is not None
        return self._original(restart)
