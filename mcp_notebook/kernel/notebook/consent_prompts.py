"""Asks the notebook's user whether a client's call may run.

If a window of VS Code has the notebook open, or JupyterLab or Notebook 7 ran the last cell and a
page of theirs has the side panel, or one of them did a moment ago, the question is shown there, and
leaves the notebook's file alone. Elsewhere it is shown
below the running cell, or the cell that ran last, and answered with ``%mcp allow`` or ``%mcp
deny``: without an extension, no frontend passes a click to the kernel, but every frontend runs
cells. Runs in the user's kernel: the link's thread shows and withdraws questions, also while a cell
runs; answers come on the main thread, or from a side panel on the link's.
"""

import itertools
import threading
import time
from collections.abc import Callable
from html import escape
from typing import Any

from msgspec import Struct

from mcp_notebook.errors import NoSuchQuestion
from mcp_notebook.kernel.notebook.live_display import LiveDisplay
from mcp_notebook.kernel.notebook.loaded_extension import comes_from_jupyter
from mcp_notebook.kernel.notebook.output_html import render_box, render_code
from mcp_notebook.text.wording import format_seconds
from mcp_notebook.wire import messages

_LINE = (
    "font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere;"
    "padding-left:8em;text-indent:-8em;min-height:1.4em"
)
"""A wrapped line is indented further than any new line, so that it cannot pass for one."""
_CLOSED = "Not answered in time, or withdrawn by the client: the call did not run."
_OUTCOMES: dict[messages.ConsentDecision, str] = {
    "once": "You allowed this call.",
    "session": "You allowed this call and {further}.",
    "deny": "You denied this call.",
}
_FURTHER: dict[messages.ConsentSession, str] = {
    "hour": "further calls of this tool by the same client, for an hour",
    "connection": "further calls of this tool by the same client, until the client disconnects",
}


class Prompt(Struct, frozen=True):
    """An open question."""

    number: int
    """The number that the user answers with."""
    question: messages.AskConsent
    answer: Callable[[messages.ConsentDecision], None]
    """Takes the answer, once."""
    display: LiveDisplay
    since: float
    """When it was asked, by `time.monotonic`."""


class ConsentPrompts:
    """The open questions of one notebook, for all bridges.

    Args:
        shell: The notebook's IPython, whose frontends show the questions.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._numbers = itertools.count(1)
        self._open: dict[int, Prompt] = {}
        self._shown: set[int] = set()
        """The numbers of those that are in the notebook's outputs."""
        self._frontends: frozenset[messages.Frontend] = frozenset()
        self._lock = threading.Lock()
        self.on_change: Callable[[], None] = lambda: None
        """Called when a question was asked or is closed, on any thread."""

    @property
    def open_prompts(self) -> tuple[Prompt, ...]:
        """The open questions, oldest first; on any thread."""
        with self._lock:
            return tuple(self._open.values())

    def set_watched(self, frontends: frozenset[messages.Frontend]) -> None:
        """Note which side panels have the questions; while none has, the outputs have them."""
        self._frontends = frontends
        self.show_unseen()

    def show_unseen(self) -> None:
        """Show the questions that no side panel shows; on any thread."""
        # VS Code says that it shows this notebook; of a Jupyter server, only the last cell tells.
        in_jupyter = "Jupyter" in self._frontends and comes_from_jupyter()
        if not (in_jupyter or "VS Code" in self._frontends):
            for prompt in self.open_prompts:
                self._show(prompt)

    def ask(
        self, question: messages.AskConsent, answer: Callable[[messages.ConsentDecision], None]
    ) -> int:
        """Show a question, and return its number; on the link's thread.

        Args:
            question: The question.
            answer: Called once with the answer, on any thread.
        """
        display = LiveDisplay(self._shell)
        with self._lock:
            number = next(self._numbers)
            prompt = Prompt(number, question, answer, display, time.monotonic())
            self._open[number] = prompt
        self.show_unseen()
        self.on_change()
        return number

    def withdraw(self, number: int) -> None:
        """Close a question that no longer needs an answer; does nothing if it is answered."""
        prompt = self._take(number)
        if prompt is not None:
            self._close(prompt, _CLOSED)

    def decide(self, number: int, decision: messages.ConsentDecision) -> str:
        """Answer a question, and return a sentence about it.

        Raises:
            NoSuchQuestion: It is not open.
        """
        prompt = self._take(number)
        if prompt is None:
            raise NoSuchQuestion(number, tuple(self._open))
        outcome = _OUTCOMES[decision].format(further=_FURTHER[prompt.question.session])
        prompt.answer(decision)
        self._close(prompt, outcome)
        return f"{prompt.question.tool}: {outcome}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the open questions."""
        return tuple(self._open)

    def _show(self, prompt: Prompt) -> None:
        """Show a question below the cell that ran last, once."""
        with self._lock:
            if prompt.number not in self._open or prompt.number in self._shown:
                return
            self._shown.add(prompt.number)
        prompt.display.show(_render(prompt, _explain_answers(prompt)))

    def _close(self, prompt: Prompt, outcome: str) -> None:
        """Say what became of a question."""
        if prompt.number in self._shown:
            self._shown.discard(prompt.number)
            prompt.display.update(_render(prompt, outcome))
        self.on_change()

    def _take(self, number: int) -> Prompt | None:
        with self._lock:
            return self._open.pop(number, None)


def _render(prompt: Prompt, below: str) -> dict[str, str]:
    """Return a question and the text below it as a MIME bundle."""
    text = prompt.question.text
    answers = render_code(below).replace("\n", "<br>")
    html = f"{_render_lines(text)}<div style='margin-top:.7em'>{answers}</div>"
    return {
        "text/plain": f"{text}\n\n{below}",
        "text/html": render_box(html),
    }


def _render_lines(text: str) -> str:
    return "".join(f"<div style='{_LINE}'>{escape(line)}</div>" for line in text.split("\n"))


def _explain_answers(prompt: Prompt) -> str:
    number, question = prompt.number, prompt.question
    return (
        f"To answer within {format_seconds(question.seconds)}, run one of these lines in a cell:\n"
        f"`%mcp allow {number}` allows this call.\n"
        f"`%mcp allow {number} session` allows this call and {_FURTHER[question.session]}.\n"
        f"`%mcp deny {number}` denies it. Without an answer, it is denied."
    )
