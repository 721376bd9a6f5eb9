"""A call that runs in a kernel, on the bridge's side: its progress, questions and result.

Runs on the bridge's event loop. A `Link` starts calls and hands them their kernel's messages;
`server.calls` follows them for its clients.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager

from msgspec import Struct, structs

from mcp_notebook.content import Result
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import content_blocks, messages

MAX_LOGS = 1000
"""Log messages of one call that wait for a slow client; beyond it, the oldest are dropped."""


class Listener(Struct, frozen=True, kw_only=True):
    """Receives a call's progress and log messages."""

    progress: Callable[[messages.Progress], Awaitable[None]] | None = None
    """Receives the newest progress; None if the client does not want any."""
    log: Callable[[messages.Log], Awaitable[None]] | None = None
    """Receives log messages; None if the client does not want any."""
    log_level: str | None = None
    """The least severe level that the client wants; None for no log messages."""


NO_LISTENER = Listener()


class BecameTask(Exception):
    """Raised when a call has become a task and will have no result of its own.

    Args:
        task: The task.
    """

    def __init__(self, task: messages.TaskInfo) -> None:
        super().__init__(task.id)
        self.task = task


class RunningCall:
    """A call that has been sent to a kernel.

    Its starter either follows it to its result or cancels it. Following may pause: the oldest and
    the newest progress, the log messages and the questions are kept until it resumes.

    Args:
        call_id: Its id in the conversation.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(self, call_id: int, send: Callable[[messages.AnyMessage], None]) -> None:
        self.id = call_id
        self._send = send
        self._result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._progress: list[messages.Progress] = []
        """The oldest and the newest progress that the listener has not received."""
        self._logs: deque[messages.Log] = deque(maxlen=MAX_LOGS)
        self._logs_left_out = 0
        self._news: asyncio.Future[None] | None = None
        """What `follow` waits for."""
        self.questions: dict[int, messages.Ask] = {}
        """The open questions by number, oldest first."""
        self.question_keys: dict[str, int] = {}
        """The numbers of the questions that the client has shown its user, by key."""
        self.on_end: Callable[[Result | KernelGone], None] | None = None
        """Called once, when the call ends."""
        self.missing_capability: str | None = None
        """The capability that the client lacks, if the call failed for that reason."""
        self.details: str | None = None
        """The whole error for the log, if the result has only a part of it for the client."""
        self.queue_seconds: float | None = None
        """How long the call waited in the kernel; None until it has ended, or if unknown."""
        self.run_seconds: float | None = None
        """How long it then ran."""
        self.task: messages.TaskInfo | None = None
        """The task that the call has become; it continues without this bridge."""
        self._is_task_told = False
        """Whether `follow` has raised `BecameTask`."""
        self.is_cancelled = False
        """Whether the bridge has sent a `Cancel`."""
        self.may_become_task = False
        """Whether it becomes a task if it takes long."""
        self.refuses_arguments = False
        """Whether it failed because its arguments do not fit."""
        self.stopped: str | None = None
        """"cancelled" or "timed out" if it was stopped and the kernel reports it."""

    async def follow(
        self, listener: Listener, *, open_questions: Collection[int] = ()
    ) -> Result | None:
        """Pass messages to the listener until there is a result or the open questions change.

        Args:
            listener: Receives progress and log messages.
            open_questions: Numbers of the open questions that the caller knows.

        Returns:
            The result, or None if the open questions are not `open_questions`.

        Raises:
            KernelGone: The kernel died or left before it answered.
            BecameTask: The call has become a task.
        """
        while True:
            while self._logs and listener.log is not None:
                await listener.log(self._next_log())
            if self.task is not None:
                self._is_task_told = True
                raise BecameTask(self.task)
            if self._progress and listener.progress is not None:
                await listener.progress(self._progress.pop(0))
            elif self._result.done():
                return self._result.result()
            elif self.questions.keys() != set(open_questions):
                return None
            else:
                self._news = self._result.get_loop().create_future()
                await self._news

    def _wake(self) -> None:
        """Have `follow` look again."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _next_log(self) -> messages.Log:
        """Return the next log message for the client, or a notice about dropped ones."""
        if not self._logs_left_out:
            return self._logs.popleft()
        text = (
            f"{self._logs_left_out:,} log messages left out here: the client did not read them in "
            f"time, and only the newest {MAX_LOGS:,} are kept."
        )
        self._logs_left_out = 0
        # Copies a kept message, whose level the client wants.
        return structs.replace(self._logs[0], logger="mcp_notebook", text=text)

    def answer(self, answer: messages.Answer) -> None:
        """Answer an open question."""
        if self.questions.pop(answer.question, None) is not None:
            self._progress.clear()  # its message says that the call waits for an answer
            self._send(answer)
            self._wake()

    def become_task(self, owner: str) -> None:
        """Ask the kernel to turn the call into a task; ignored if it ends before.

        Args:
            owner: The task's owner.
        """
        if not self._result.done():
            self._send(messages.KeepCall(id=self.id, owner=owner))

    def cancel(self, reason: str) -> None:
        """Cancel the call unless it has ended or become a task that its client knows.

        Does nothing the second time.
        """
        if not self._result.done() and not self.is_cancelled and not self._is_task_told:
            self.is_cancelled = True
            self._send(messages.Cancel(id=self.id, reason=reason))

    def cancel_on_error(self) -> AbstractContextManager[None]:
        """Return a block that cancels the call if an exception or a cancellation leaves it."""
        return _CancelOnError(self)

    def handle(self, message: messages.AnyMessage, attachments: list[bytes]) -> None:
        """Handle a message from the kernel about this call."""
        match message:
            case messages.Returned():
                self.missing_capability, self.details = message.lacks, message.details
                self.queue_seconds = message.queue_seconds
                self.run_seconds = message.run_seconds
                self.stopped = message.stopped
                self.refuses_arguments = message.refuses_arguments
                self.end(content_blocks.unpack_result(message, attachments))
            case messages.TaskState():
                self.task = message.task
            case messages.Progress():
                self._progress[1:] = [message]
            case messages.Log():
                self._logs_left_out += len(self._logs) == MAX_LOGS
                self._logs.append(message)
            case messages.Ask():
                self.questions[message.question] = message
            case messages.Withdraw():
                self.questions.pop(message.question, None)
        self._wake()

    def end(self, outcome: Result | KernelGone) -> None:
        """End the call with its result, or with the reason why it has none."""
        if self._result.done():
            return
        if isinstance(outcome, KernelGone):
            self._result.set_exception(outcome)
            self._result.exception()  # retrieved, or asyncio warns if the call is not followed
        else:
            self._result.set_result(outcome)
        self._wake()
        if self.on_end is not None:
            self.on_end(outcome)


class _CancelOnError(AbstractContextManager[None]):
    """Cancels a call if an exception or a cancellation leaves the block."""

    def __init__(self, call: RunningCall) -> None:
        self._call = call

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._call.cancel("The client cancelled the call.")
