"""A call that runs in a kernel, as the bridge sees it: its result, and what it says before.

Runs in the bridge, on its event loop. `bridge.kernels.links` begins calls and brings what kernels
say of them; who follows a call, and what its client is told, is `bridge.server.server`'s and
`bridge.server.elicitation`'s business.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp_notebook.content import Result
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import content_blocks, messages

MAX_LOGS = 1000
"""Log messages of one call that wait for a slow client; the oldest are dropped."""


@dataclass(frozen=True, kw_only=True)
class Listener:
    """What a client wants to hear of its call besides the result."""

    progress: Callable[[messages.Progress], Awaitable[None]] | None = None
    """Takes the newest progress, None if it is not wanted."""
    log: Callable[[messages.Log], Awaitable[None]] | None = None
    """Takes log messages."""
    log_level: str | None = None
    """The least severe level that is wanted; None: none."""


NOBODY = Listener()


class RunningCall:
    """A call that has been sent to a kernel.

    Who began it follows it to its result, or cancels it. It may pause in following: what comes
    meanwhile is kept, as far as it is of use.

    Args:
        call_id: Its id in the conversation.
        send: Sends a message to the kernel, if there still is one.
    """

    def __init__(self, call_id: int, send: Callable[[messages.AnyMessage], None]) -> None:
        self.id = call_id
        self._send = send
        self._result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._progress: messages.Progress | None = None
        """The newest progress that has not been passed on."""
        self._logs: deque[messages.Log] = deque(maxlen=MAX_LOGS)
        self._news = asyncio.Event()
        self.questions: dict[int, messages.Ask] = {}
        """Those that are open, oldest first."""
        self.shown: dict[str, int] = {}
        """By their keys, the questions that the client has brought to its user."""
        self.lacks: str | None = None
        """The capability of the client without which the call failed."""

    async def follow(self, listener: Listener, *, asked: Collection[int] = ()) -> Result | None:
        """Pass on what the call says until it has a result, or its open questions are others.

        Args:
            listener: Takes what it says.
            asked: Numbers of the questions that are known to be open.

        Raises:
            KernelGone: The kernel died, or left, before it answered.
        """
        while True:
            self._news.clear()
            while self._logs and listener.log is not None:
                await listener.log(self._logs.popleft())
            if self._result.done():
                return self._result.result()
            if self._progress is not None and listener.progress is not None:
                progress, self._progress = self._progress, None
                await listener.progress(progress)
            elif self.questions.keys() != set(asked):
                return None
            else:
                await self._news.wait()

    def answer(self, answer: messages.Answer) -> None:
        """Answer an open question."""
        if self.questions.pop(answer.question, None) is not None:
            self._progress = None  # it said that the call waits
            self._send(answer)
            self._news.set()

    def cancel(self, reason: str) -> None:
        """Stop the call, if it has not ended."""
        if not self._result.done():
            self._send(messages.Cancel(id=self.id, reason=reason))

    @contextmanager
    def cancelled_with_block(self) -> Iterator[None]:
        """Cancel the call if the block is left in any way but to its end."""
        try:
            yield
        except BaseException:
            self.cancel("The client cancelled the call.")
            raise

    def take(self, message: messages.AnyMessage, attachments: list[bytes]) -> None:
        """Take a message of the kernel's."""
        match message:
            case messages.Returned():
                self.lacks = message.lacks
                self.end(content_blocks.unpack_result(message, attachments))
            case messages.Progress():
                self._progress = message
            case messages.Log():
                self._logs.append(message)
            case messages.Ask():
                self.questions[message.question] = message
            case messages.Withdraw():
                self.questions.pop(message.question, None)
        self._news.set()

    def end(self, outcome: Result | KernelGone) -> None:
        """Give the call its result, or the reason why it gets none."""
        if self._result.done():
            return
        if isinstance(outcome, KernelGone):
            self._result.set_exception(outcome)
            self._result.exception()  # otherwise asyncio complains if nobody follows the call
        else:
            self._result.set_result(outcome)
        self._news.set()
