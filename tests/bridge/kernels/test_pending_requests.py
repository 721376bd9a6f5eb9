"""Requests get their own replies, in time or not at all."""

import asyncio

import anyio
import pytest

from mcp_notebook.bridge.kernels.pending_requests import PendingRequests
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


class Requests(PendingRequests[str]):
    """Notes what is sent."""

    def __init__(self):
        self.sent = []
        super().__init__(iter(range(1, 9)).__next__, self.sent.append)

    async def start(self, seconds=9.0, **options):
        """Send a request, and return the task that waits for its reply."""
        task = asyncio.ensure_future(
            self.ask(lambda number: messages.Cancel(id=number), seconds=seconds, **options)
        )
        await anyio.wait_all_tasks_blocked()
        return task


async def test_each_request_has_a_number_and_gets_the_first_reply_to_it():
    requests = Requests()
    first, second = await requests.start(), await requests.start()
    assert [message.id for message in requests.sent] == [1, 2]
    for number, reply in ((2, "two"), (2, "again"), (7, "nobody's"), (1, "one")):
        requests.take(number, reply)
    assert (await first, await second) == ("one", "two")
    requests.take(1, "late")


async def test_a_request_without_a_reply_ends_in_time_and_what_comes_late_is_ignored():
    requests = Requests()
    with pytest.raises(TimeoutError):
        await (await requests.start(0.01))
    requests.take(1, "late")
    assert len(requests.sent) == 1


async def test_a_request_that_nobody_waits_for_is_withdrawn_if_that_can_be_said():
    requests = Requests()
    for options in ({}, {"make_withdrawal": lambda number: messages.WithdrawConsent(id=number)}):
        request = await requests.start(**options)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
    assert requests.sent[2:] == [messages.WithdrawConsent(id=2)]


async def test_all_requests_end_with_their_kernel():
    requests = Requests()
    open_ones = [await requests.start(), await requests.start()]
    requests.end("The kernel died.")
    requests.end("It is dead.")
    for request in open_ones:
        with pytest.raises(KernelGone, match="died"):
            await request
