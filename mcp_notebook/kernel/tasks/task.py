"""A call that outlives the bridge that started it: its state, its questions and its result.

Runs on the endpoint's thread. It receives the link's messages about the call's progress and
questions, as a bridge would.
"""

import time
from collections.abc import Callable
from typing import TypeAlias

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.tools.open_questions import Elicitations, Reply
from mcp_notebook.wire import messages

Watcher: TypeAlias = Callable[[], None]
"""Called after each change of a task."""
_MAX_MESSAGE = 500
"""Characters of a task's message."""


class Task:
    """One task.

    Args:
        task_id: An id that cannot be guessed.
        owner: Who may see it.
        call: The call.
        elicitations: The call's questions.
    """

    def __init__(self, task_id: str, owner: str, call: Call, elicitations: Elicitations) -> None:
        self.id = task_id
        self.owner = owner
        self.call = call
        self.elicitations = elicitations
        self.result: Result | None = None
        """None while the call runs."""
        self.ends: float | None = None
        """When it will be dropped, in seconds since the epoch; None while it runs."""
        self.version = 0
        """Incremented by each change."""
        self._created = self._updated = time.time()
        self.message: str | None = None
        """Its progress, or how it ended, in a few words."""
        self._latest: messages.Progress | None = None
        self.questions: dict[str, messages.Ask] = {}
        """The open questions by their keys."""
        self._keys: dict[str, int] = {}
        """The number of the question that each key belongs to."""
        self._watchers: list[Watcher] = []

    @property
    def status(self) -> messages.TaskStatus:
        """Its status in MCP's terms; a failure of the tool itself is a result."""
        if self.result is None:
            return "input_required" if self.questions else "working"
        if self.call.missing_capability is not None:
            return "failed"
        return "cancelled" if self.call.state is CallState.CANCELLED else "completed"

    def describe(self) -> messages.TaskInfo:
        """Return the description for bridges, without the result."""
        return messages.TaskInfo(
            id=self.id,
            tool=self.call.tool,
            status=self.status,
            message=self.message,
            latest=self._latest,
            created=self._created,
            updated=self._updated,
            ends=self.ends,
            version=self.version,
            questions={
                key: messages.TaskQuestion(message=question.message, form=question.form)
                for key, question in self.questions.items()
            },
            lacks=self.call.missing_capability,
        )

    # -- messages from its call --------------------------------------------------------------------

    def take_progress(self, progress: messages.Progress) -> None:
        """Note the call's progress."""
        self._latest = progress.follow(self._latest)
        text = _describe_progress(progress)
        if text != self.message:
            self.message = text
            self._change()

    def take_question(self, question: messages.Ask) -> None:
        """Note a question; its key is changed if another question has used it."""
        key = question.key
        while self._keys.setdefault(key, question.question) != question.question:
            key = f"{key}-{question.question}"
        self.questions[key] = question
        self._change()

    def withdraw_question(self, number: int) -> None:
        """Remove a question that the call has withdrawn."""
        for key, question in tuple(self.questions.items()):
            if question.question == number:
                del self.questions[key]
                self._change()

    def end(self, result: Result) -> None:
        """Take the call's result."""
        self.result = result
        # The task may be kept for an hour, and the call's arguments and output may be large.
        self.call, self.elicitations = self.call.copy_without_arguments(), Elicitations()
        self.questions.clear()
        text = next((block.text for block in result.content if isinstance(block, Text)), "")
        self.message = _shorten(text) if result.is_error else None
        self._change()

    # -- requests of bridges -----------------------------------------------------------------------

    def answer(self, key: str, reply: Reply | CallError) -> None:
        """Answer a question; does nothing if no open question has this key."""
        question = self.questions.pop(key, None)
        if question is not None:
            self.message = None  # it told that the call waits for the answer
            self._change()
            self.elicitations.answer(question.question, reply)

    def watch(self, watcher: Watcher) -> None:
        """Call a function after each change from now on."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Stop calling a function; harmless if it is not registered."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def _change(self) -> None:
        self.version += 1
        self._updated = time.time()
        for watcher in tuple(self._watchers):
            watcher()


def _describe_progress(progress: messages.Progress) -> str | None:
    count = None
    if progress.progress is not None and progress.total is not None:
        count = f"{progress.progress:g} of {progress.total:g}"
    if progress.message is None:
        return count
    return _shorten(progress.message if count is None else f"{progress.message} ({count})")


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE - 1]}…"
