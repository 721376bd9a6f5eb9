"""A call whose function runs elsewhere, as `kernel.executors` sees it.

Runs in the user's kernel, on the thread of the call, which waits for the executor's worker.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.tools.context import LogMessage, Update


class CallElsewhere:
    """Passes on what happens on the worker.

    Args:
        call: The call; its capture is active.
        stopper: Limits the call's time, and answers it if it has to stop and the worker goes on.
    """

    def __init__(self, call: ActiveCall, stopper: Stopper) -> None:
        self._call = call
        self._stopper = stopper

    @property
    def tool(self) -> str:
        """Name of the tool."""
        return self._call.tool

    @property
    def trace(self) -> Mapping[str, str]:
        """The trace that spans of the function belong to, as W3C's headers; empty if none is."""
        return {} if self._call.span is None else self._call.span.trace.headers

    @property
    def has_to_stop(self) -> bool:
        """Whether it has to stop."""
        return self._call.stop_request is not None

    def set_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Set what asks it to stop."""
        self._call.set_interrupt(interrupt)

    def wait_for(self, whom: str) -> None:
        """Count as waiting for somebody."""
        self._call.wait_for(whom)

    def resume(self) -> None:
        """Count as running again."""
        self._call.resume()

    def limit_time(self) -> None:
        """Let its time begin."""
        self._stopper.limit_time(self._call)

    def answer_early(self) -> None:
        """Answer it, as it has to stop, while its function runs on."""
        self._stopper.answer_early(self._call)

    def write(self, text: str) -> None:
        """Take what the function printed."""
        self._call.capture.write(text)

    def display(self, function: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Display what the function displayed, by a function of ``IPython.display``."""
        from IPython import display  # noqa: PLC0415 - nearly all calls do without

        getattr(display, function)(*args, **options)

    def tell(self, kind: str, *fields: Any) -> None:
        """Take a message of the function's context: progress, or one for the log."""
        capture = self._call.capture
        if kind == "log":
            capture.log(LogMessage(*fields))
        elif capture.report is not None:
            capture.report(Update(*fields))
