"""What is changed in the process so that each call has its outputs, figures and logs to itself.

Runs in the user's kernel, on the threads of the calls. What is changed for a call lets everything
outside of calls pass; `close` puts all of it back.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.kernel.calls.capture import Capture, OutputRouter, current_capture
from mcp_notebook.kernel.calls.logs import LoggingPatcher
from mcp_notebook.kernel.calls.progress_bars import ProgressBarPatcher, ProgressBars
from mcp_notebook.kernel.calls.pyplot import PyplotPatcher


class CallEnvironment:
    """Surrounds the code of calls.

    Args:
        shell: The notebook's IPython.
        loop: The main thread's event loop.
        format_display: Does for a call, given its capture, what ``shell.display_formatter.format``
            does for cells.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        loop: asyncio.AbstractEventLoop,
        format_display: Callable[..., tuple[dict[str, Any], dict[str, Any]]],
    ) -> None:
        self.router = OutputRouter(shell, loop, format_display)
        """Sends what a call prints and displays to its capture."""
        self._pyplot = PyplotPatcher()
        self._bars = ProgressBarPatcher(_current_bars)
        self._logging = LoggingPatcher(current_capture)

    @contextmanager
    def surround(self, capture: Capture) -> Iterator[None]:
        """Run the code of a call in this block, apart from cells and from other calls.

        Args:
            capture: Takes what the code prints, displays and logs.
        """
        self._pyplot.begin()
        self._bars.install()
        if capture.wants_logs:
            self._logging.install()
        claim = self.router.descriptors.claim(capture.write)
        with self.router.route_outputs(), claim, capture.activate():
            yield

    def close(self) -> None:
        """Put everything back; on the main thread."""
        self.router.close()
        self._pyplot.uninstall()
        self._bars.uninstall()
        self._logging.uninstall()


def _current_bars() -> ProgressBars | None:
    capture = current_capture()
    return None if capture is None else capture.bars
