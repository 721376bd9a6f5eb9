"""What a bridge asks the notebook of one kernel: whether a call may run.

Runs on the bridge's event loop. A `Link` sends the questions, hands over the answers, and ends the
questions when the kernel is gone.
"""

from collections.abc import Callable

from mcp_notebook.bridge.kernels.pending_requests import PendingRequests
from mcp_notebook.wire import messages


class ConsentRequests:
    """The questions that are open in one notebook.

    Args:
        next_id: Returns a number that no other request of the conversation has.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(
        self, next_id: Callable[[], int], send: Callable[[messages.AnyMessage], None]
    ) -> None:
        self._requests: PendingRequests[messages.ConsentDecision] = PendingRequests(next_id, send)
        self.is_possible = False
        """Whether the kernel is connected, and its notebook has somebody to ask."""

    async def ask(
        self, tool: str, text: str, *, seconds: float, scope: str
    ) -> messages.ConsentDecision:
        """Show a question in the notebook until it is answered, and return the answer.

        When the task is cancelled, the question is withdrawn.

        Args:
            tool: The tool's name.
            text: The question.
            seconds: How long the caller will wait, who then cancels the task.
            scope: What a permission for longer allows besides this call.

        Raises:
            KernelGone: The kernel is gone.
        """
        return await self._requests.ask(
            lambda number: messages.AskConsent(
                id=number, tool=tool, text=text, seconds=seconds, scope=scope
            ),
            seconds=None,
            make_withdrawal=lambda number: messages.WithdrawConsent(id=number),
        )

    def take_answer(self, message: messages.Consent) -> None:
        """Take what the kernel sent; nothing happens if nobody waits for it."""
        self._requests.take(message.id, message.decision)

    def close(self, reason: str) -> None:
        """End all questions: the kernel is gone, for this reason."""
        self.is_possible = False
        self._requests.end(reason)
