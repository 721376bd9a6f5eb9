"""Captures what one call prints, displays and logs, within bounds and without its secrets.

Runs in the user's kernel, on the threads of the calls. A ContextVar holds the call that an output
belongs to, so overlapping calls never see each other's output. `environment` routes outputs here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cached_property
from itertools import groupby
from typing import Any

from msgspec import structs

from mcp_notebook.kernel.calls.interrupts import Steps
from mcp_notebook.kernel.calls.progress_bars import ProgressBars
from mcp_notebook.kernel.results.outputs import Displayed, Output, Printed
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.kernel.schemas.secrets import scrub
from mcp_notebook.kernel.tools.context import (
    NO_CLIENT,
    Client,
    LogMessage,
    Update,
)

MAX_PRINTED = 1_000_000
"""Characters of printed text that are kept from the start; after that, only the last ones are."""
_MAX_TAIL = 100_000
MAX_DISPLAYS = 200
"""Displays that are kept for one call."""
_MAX_LINE = 200
"""Characters of a printed line that are reported as progress."""

CURRENT: ContextVar["Capture | None"] = ContextVar("mcp_notebook_capture", default=None)
"""The capture of the call that code belongs to; `environment` sets it."""


class Capture:
    """The outputs of one call; written by the thread that runs it.

    Args:
        client: Gets log messages, and printed lines as progress, while the call runs.
    """

    def __init__(self, client: Client = NO_CLIENT) -> None:
        self._client = client
        self.secrets: tuple[str, ...] = ()
        """Texts to remove from everything that the call prints, logs and reports."""
        self._line = ""
        """The text printed after the last newline."""
        self.streams: dict[str, Any] = {}
        """The streams and ``displayhook`` of ``sys``, and the ``display_pub`` of IPython, that the
        call's own code has set."""
        self.yielded: list[Any] = []
        """What the call's generator has yielded."""
        self.figures = 0
        """matplotlib figures that the call has displayed."""
        self.steps = Steps()
        """The steps of the call's tasks."""
        self._reset()

    @property
    def report(self) -> Callable[[Update], None] | None:
        """Receives progress; None: it is never needed."""
        # Not an attribute: a method that its own object holds would leave a cycle for each call.
        return None if self._client.report is None else self._report

    @cached_property
    def bars(self) -> ProgressBars:
        """The call's progress bars."""
        return ProgressBars(self.report or _ignore)

    def send_by(
        self, report: Callable[[Update], None], send_log: Callable[[LogMessage], None]
    ) -> None:
        """Send progress and log messages through other functions, if the client wants them."""
        client = self._client
        self._client = structs.replace(
            client,
            report=None if client.report is None else report,
            send_log=None if client.send_log is None else send_log,
        )

    def _reset(self) -> None:
        self._outputs: list[Output] = []
        self._display_ids: dict[str, int] = {}
        self._printed = 0
        self._displays = 0
        self._canvases: list[Any] = []
        """Figures whose canvases were displayed; they are not drawn again at the end."""
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._clear_at_next = False

    @property
    def outputs(self) -> tuple[Output, ...]:
        """All outputs in order; adjacent prints are joined if secrets have to be removed."""
        tail: tuple[Output, ...] = ()
        if self._tail:
            note = f"\n[... {self._dropped:,} characters dropped ...]\n" if self._dropped else ""
            tail = (Printed(note + "".join(self._tail)),)
        outputs = (*self._outputs, *tail)
        return tuple(self._scrub_prints(outputs)) if self.secrets else outputs

    def _scrub_prints(self, outputs: Iterable[Output]) -> Iterator[Output]:
        """Yield outputs with adjacent prints joined: a secret may be printed in pieces."""
        for is_print, group in groupby(outputs, lambda output: isinstance(output, Printed)):
            if is_print:
                text = "".join(output.text for output in group if isinstance(output, Printed))
                yield Printed(scrub(text, self.secrets))
            else:
                yield from group

    def write(self, text: str) -> None:
        """Add printed text, within bounds: a tool may print forever."""
        if not text:
            return
        self._clear_if_due()
        text = scrub(text, self.secrets)  # before it is cut
        if self._client.report is not None and self._client.sees_progress():
            self._report_line(text)
        room = MAX_PRINTED - self._printed
        if room > 0:
            self._printed += len(text)
            self._outputs.append(Printed(text[:room]))
        # Not ``text[room:]``, which would copy the dropped part of a long print.
        start = max(room, len(text) - _MAX_TAIL, 0)
        if start >= len(text):
            return
        self._tail.append(text[start:])
        self._tail_size += len(self._tail[-1])
        self._dropped += start - max(room, 0)
        while self._tail_size > _MAX_TAIL and len(self._tail) > 1:
            oldest_chars = len(self._tail.popleft())
            self._tail_size -= oldest_chars
            self._dropped += oldest_chars

    def _report_line(self, text: str) -> None:
        self._line += text[-2 * _MAX_LINE :].replace("\r", "\n")
        lines, newline, self._line = self._line[-2 * _MAX_LINE :].rpartition("\n")
        line = clean_text(lines).rstrip().rpartition("\n")[2].strip()
        if newline and line:
            self._report(Update(message=line[:_MAX_LINE]))

    def _report(self, update: Update) -> None:
        """Send progress to the client."""
        assert self._client.report is not None
        if self.secrets and update.message is not None:
            update = structs.replace(update, message=scrub(update.message, self.secrets))
        self._client.report(update)

    @property
    def wants_logs(self) -> bool:
        """Whether anybody receives log messages."""
        return self._client.send_log is not None

    def log(self, message: LogMessage) -> None:
        """Send a log message of any level, if the client wants them."""
        if self._client.send_log is not None:
            text = scrub(message.text, self.secrets)
            self._client.send_log(structs.replace(message, text=text))

    def add_canvas(self, figure: Any) -> None:
        """Note that the canvas of a figure was displayed."""
        self._canvases.append(figure)

    def has_canvas(self, figure: Any) -> bool:
        """Return whether the canvas of a figure was displayed."""
        return any(item is figure for item in self._canvases)

    def show(self, data: dict[str, Any], metadata: dict[str, Any], display_id: str | None) -> None:
        """Add a display; it replaces an earlier one with the same id."""
        self._clear_if_due()
        displayed = Displayed(data, metadata)
        if display_id is not None and display_id in self._display_ids:
            self._outputs[self._display_ids[display_id]] = displayed
            return
        self._displays += 1
        if self._displays == MAX_DISPLAYS:
            self._outputs.append(Printed(f"[over {MAX_DISPLAYS} displays: the rest is left out]"))
        if self._displays >= MAX_DISPLAYS:
            return
        if display_id is not None:
            self._display_ids[display_id] = len(self._outputs)
        self._outputs.append(displayed)

    def clear(self, *, wait: bool) -> None:
        """Clear the outputs, at once or when the next one comes."""
        self._clear_at_next = True
        if not wait:
            self._clear_if_due()

    def _clear_if_due(self) -> None:
        if self._clear_at_next:
            self._reset()


def _ignore(_update: Update) -> None:
    """Drop progress that was not requested."""


def current_capture() -> Capture | None:
    """Return the capture of the call that the current context belongs to."""
    return CURRENT.get()
