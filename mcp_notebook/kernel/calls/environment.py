"""What is changed in the process so that each call has its outputs, figures and logs to itself.

Runs in the user's kernel, on the threads of the calls. What is changed for a call lets everything
outside of calls pass; `close` puts all of it back.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

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

    def surround(self, capture: Capture) -> AbstractContextManager[None]:
        """Run the code of a call in a block, apart from cells and from other calls.

        Args:
            capture: Takes what the code prints, displays and logs.
        """
        return _Surroundings(self, capture)

    def install(self, capture: Capture) -> None:
        """Install the patches that outlast a call, if they are not installed yet."""
        self._pyplot.begin()
        self._bars.install()
        if capture.wants_logs:
            self._logging.install()

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


class _Surroundings(AbstractContextManager[None]):
    """What surrounds the code of a call."""

    def __init__(self, environment: CallEnvironment, capture: Capture) -> None:
        self._environment = environment
        self._capture = capture

    def __enter__(self) -> None:
        self._environment.install(self._capture)
        router = self._environment.router
        self._routing, self._descriptors = router.route_outputs(self._capture), router.descriptors
        self._routing.__enter__()
        try:
            self._claim = self._descriptors.claim(self._capture.write)
        except BaseException as error:
            self._routing.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._descriptors.release(self._claim)
        finally:
            self._routing.__exit__(kind, error, traceback)


def _current_bars() -> ProgressBars | None:
    capture = current_capture()
    return None if capture is None else capture.bars
