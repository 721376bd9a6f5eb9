"""A call that runs in a kernel, as the bridge sees it: its result, and what it sends before.

Runs on the bridge's event loop. A `Link` starts calls and hands them what their kernel sends; the
`calls` room follows them for its clients.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass

from mcp_notebook.content import Result
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import content_blocks, messages

MAX_LOGS = 1000
"""Log messages of one call that wait for a slow client; beyond it the oldest are left out."""


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Takes what a call sends besides its result."""

    progress: Callable[[messages.Progress], Awaitable[None]] | None = None
    """Takes the newest progress; None if the client does not want any."""
    may_become_task: bool = False
    """Whether the call may become a task, which says how far it is whoever wants to know."""
    log: Callable[[messages.Log], Awaitable[None]] | None = None
    """Takes log messages; None if the client does not want any."""
    log_level: str | None = None
    """The least severe level that the client wants; None for no log messages."""

    @property
    def wants_progress(self) -> bool:
        """Whether the kernel is to send progress."""
        return self.progress is not None or self.may_become_task


NO_LISTENER = Listener()


class BecameTask(Exception):
    """A call is not followed to its result: it goes on as a task.

    Args:
        task: The task.
    """

    def __init__(self, task: messages.TaskInfo) -> None:
        super().__init__(task.id)
        self.task = task


class RunningCall:
    """A call that has been sent to a kernel.

    Whoever started it either follows it to its result or cancels it. Following may pause: the
    oldest and the newest progress, the log messages and the questions are kept until it resumes.

    Args:
        call_id: Its id in the conversation.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(self, call_id: int, send: Callable[[messages.AnyMessage], None]) -> None:
        self.id = call_id
        self._send = send
        self._result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._progress: list[messages.Progress] = []
        """The oldest and the newest progress that have not been passed on."""
        self._logs: deque[messages.Log] = deque(maxlen=MAX_LOGS)
        self._logs_left_out = 0
        self._news = asyncio.Event()
        self.questions: dict[int, messages.Ask] = {}
        """The open questions by number, oldest first."""
        self.question_keys: dict[str, int] = {}
        """The numbers of the questions that the client has shown its user, by key."""
        self.on_end: Callable[[Result | KernelGone], None] | None = None
        """Called once, when the call ends."""
        self.missing_capability: str | None = None
        """The capability that the call failed for, because the client does not have it."""
        self.queue_seconds: float | None = None
        """How long the call waited in the kernel, once it has ended; None if nobody says."""
        self.run_seconds: float | None = None
        """How long it ran then."""
        self.task: messages.TaskInfo | None = None
        """The task that the call has become: it goes on without this bridge."""
        self._is_task_told = False
        """Whether who follows the call has been told of the task."""
        self.is_cancelled = False
        """Whether the bridge has cancelled it, or has given it up if it can go on."""
        self.is_kept = False
        """Whether it goes on if whoever waits for it goes."""
        self.is_on_main_thread = False
        """Whether it holds the kernel's main thread while it runs."""
        self.stopped: str | None = None
        """"cancelled" or "timed out" if it was stopped, as far as the kernel says so."""

    async def follow(
        self, listener: Listener, *, open_questions: Collection[int] = ()
    ) -> Result | None:
        """Pass on what the call sends until it has a result or its open questions change.

        Args:
            listener: Takes progress and log messages.
            open_questions: Numbers of the questions that the caller knows to be open.

        Returns:
            The result, or None if the open questions are not `open_questions`.

        Raises:
            KernelGone: The kernel died or left before it answered.
            BecameTask: The call has become a task.
        """
        while True:
            self._news.clear()
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
                await self._news.wait()

    def _next_log(self) -> messages.Log:
        """Return the next log message for the client, or one that says what was left out."""
        if not self._logs_left_out:
            return self._logs.popleft()
        text = (
            f"{self._logs_left_out:,} log messages left out here: the client did not take them in "
            f"time, and only the newest {MAX_LOGS:,} are kept."
        )
        self._logs_left_out = 0
        # With a level that the client wants: that of a message that is kept.
        return self._logs[0].model_copy(update={"logger": "mcp_notebook", "text": text})

    def answer(self, answer: messages.Answer) -> None:
        """Answer an open question."""
        if self.questions.pop(answer.question, None) is not None:
            self._progress.clear()  # its message says that the call waits for the answer
            self._send(answer)
            self._news.set()

    def become_task(self, owner: str) -> None:
        """Let the call outlive this bridge, if it does not end before the kernel hears of it.

        Args:
            owner: Whose task it will be.
        """
        if not self._result.done():
            self._send(messages.KeepCall(id=self.id, keep=messages.Keep(owner=owner)))

    def cancel(self, reason: str) -> None:
        """Cancel the call unless it has ended or become a task that its client knows.

        Does nothing if the bridge has done so already. If it has ended, nobody takes the result.
        """
        if self._result.done():
            self.leave()
        elif not self.is_cancelled and not self._is_task_told:
            self.is_cancelled = True
            self._send(messages.Cancel(id=self.id, reason=reason))

    def leave(self) -> None:
        """Let the call go on without who waits for it, if it is kept and can; it is not stopped.

        If it has ended, nobody has taken the result, which the same call gets then.
        """
        if self.is_kept and not self._is_task_told and not self.is_cancelled:
            self.is_cancelled = True
            self._send(messages.LeaveCall(id=self.id))

    def cancel_on_error(self) -> AbstractContextManager[None]:
        """Cancel the call if a block is left by an exception or a cancellation."""
        return _CancelOnError(self)

    def handle(self, message: messages.AnyMessage, attachments: list[bytes]) -> None:
        """Take a message that the kernel sent about this call."""
        match message:
            case messages.Returned():
                self.missing_capability = message.lacks
                self.queue_seconds = message.queue_seconds
                self.run_seconds = message.run_seconds
                self.stopped = message.stopped
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
        self._news.set()

    def end(self, outcome: Result | KernelGone) -> None:
        """End the call with its result, or with the reason why it has none."""
        if self._result.done():
            return
        if isinstance(outcome, KernelGone):
            self._result.set_exception(outcome)
            self._result.exception()  # otherwise asyncio complains if nobody follows the call
        else:
            self._result.set_result(outcome)
        self._news.set()
        if self.on_end is not None:
            self.on_end(outcome)


class _CancelOnError(AbstractContextManager[None]):
    """Cancels a call if the block is left by an exception or a cancellation."""

    def __init__(self, call: RunningCall) -> None:
        self._call = call

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._call.cancel("The client cancelled the call.")
