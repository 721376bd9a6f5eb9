"""A bridge's questions whether calls may run, on their way to the notebook and back.

Runs on the endpoint's thread; only `ConsentQuestions._answer` is called on others. There is one for
each conversation, which ends the questions that are still open.
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Protocol

from mcp_notebook.wire import messages


class NotebookPrompts(Protocol):
    """Shows questions in the notebook: `kernel.notebook.consent_prompts`."""

    def ask(
        self, question: messages.AskConsent, answer: Callable[[messages.ConsentDecision], None]
    ) -> int:
        """Show a question, and return its number; `answer` is called once, on any thread."""

    def withdraw(self, number: int) -> None:
        """Close a question, if it is open."""


class ConsentQuestions:
    """The open questions of one conversation.

    Args:
        prompts: Shows them; None if nobody sees the notebook.
        send: Sends the bridge a message; on the endpoint's thread.
    """

    def __init__(
        self, prompts: NotebookPrompts | None, send: Callable[[messages.Consent], None]
    ) -> None:
        self._prompts = prompts
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._numbers: dict[int, int] = {}
        """The prompts' numbers, by the ids of the questions."""

    def ask(self, question: messages.AskConsent) -> None:
        """Show a question in the notebook."""
        if self._prompts is None:
            self._send(messages.Consent(id=question.id, decision="deny"))
        else:
            answer = partial(self._answer, question.id)
            self._numbers[question.id] = self._prompts.ask(question, answer)

    def withdraw(self, question_id: int) -> None:
        """Close a question; does nothing if it is answered."""
        number = self._numbers.pop(question_id, None)
        if number is not None and self._prompts is not None:
            self._prompts.withdraw(number)

    def close(self) -> None:
        """Close all questions: the bridge is gone."""
        for question_id in tuple(self._numbers):
            self.withdraw(question_id)

    def _answer(self, question_id: int, decision: messages.ConsentDecision) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            self._loop.call_soon_threadsafe(self._send_answer, question_id, decision)

    def _send_answer(self, question_id: int, decision: messages.ConsentDecision) -> None:
        if self._numbers.pop(question_id, None) is not None:
            self._send(messages.Consent(id=question_id, decision=decision))
