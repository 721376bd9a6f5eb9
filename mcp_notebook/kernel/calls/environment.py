"""What is changed in the process so that each call has its outputs, figures and logs to itself.

Runs in the user's kernel, on the threads of the calls. What is changed for a call lets everything
outside of calls pass; `close` puts all of it back.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from mcp_notebook.kernel.calls.capture import Capture, OutputRouter, current_capture
from mcp_notebook.kernel.calls.descriptors import OwnDescriptors
from mcp_notebook.kernel.calls.logs import LoggingPatcher
from mcp_notebook.kernel.calls.progress_bars import ProgressBarPatcher, ProgressBars
from mcp_notebook.kernel.calls.pyplot import PyplotPatcher


class CallEnvironment:
    """Surrounds the code of calls.

    Args:
        router: Routes the outputs of all calls of this kernel.
    """

    def __init__(self, router: OutputRouter) -> None:
        self.router = router
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
        descriptors = self.router.descriptors
        with self.router.route_outputs(capture):
            claim = descriptors.claim(capture.write)
            try:
                yield
            finally:
                descriptors.release(claim)

    @contextmanager
    def read_descriptors(self, capture: Capture) -> Iterator[None]:
        """In a copy of the kernel: what is written to descriptors 1 and 2 is the call's alone.

        Args:
            capture: The call's.
        """
        with OwnDescriptors(capture.write) as self.router.descriptors:
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
