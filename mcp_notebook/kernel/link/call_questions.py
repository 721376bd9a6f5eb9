"""A call's questions to its client's user, on their way from the call's thread to the endpoint's.

Any thread may ask; what is sent is sent on the endpoint's thread.
"""

import asyncio
import contextlib
from collections.abc import Callable

from mcp_notebook.kernel.tools.open_questions import Elicitation, Withdrawal
from mcp_notebook.wire import messages


def make_asker(
    call_id: int,
    loop: asyncio.AbstractEventLoop,
    send: Callable[[messages.Ask | messages.Withdraw], None],
) -> Callable[[Elicitation | Withdrawal], None]:
    """Return what sends a call's questions, and takes them back, from any thread.

    Args:
        call_id: Of the call.
        loop: The endpoint's.
        send: Sends a message; called on the endpoint's thread.
    """

    def ask(question: Elicitation | Withdrawal) -> None:
        message: messages.Ask | messages.Withdraw
        if isinstance(question, Withdrawal):
            message = messages.Withdraw(id=call_id, question=question.number)
        else:
            message = make_ask(call_id, question)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            loop.call_soon_threadsafe(send, message)

    return ask


def make_ask(call_id: int, question: Elicitation) -> messages.Ask:
    """Return the message with a call's question."""
    return messages.Ask(
        id=call_id,
        question=question.number,
        key=question.key,
        message=question.message,
        form=question.schema,
    )
