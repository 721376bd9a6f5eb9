"""The ends of calls that a client cannot time: an interrupt or a cancel at the very last moment."""

import asyncio
import contextvars
import os
import signal
import threading

import pytest

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.interrupts import InterruptWatch
from mcp_notebook.kernel.calls.runners import MainRunner, ThreadRunner
from mcp_notebook.kernel.tools.declared_tool import make_tool

LIMIT = 30
UNWANTED = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))


async def answer() -> str:
    """Give an answer."""
    await asyncio.sleep(0)
    return "the answer"


@pytest.fixture
def call(queue, registry):
    registry.add(make_tool(answer))
    call = ActiveCall("answer", reply=lambda _: None, lock=queue.lock)
    queue.add(call)
    return call


@pytest.fixture
def watch(loop):
    """A watch in a process that ignores SIGINT, as ipykernel does between cells."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield InterruptWatch(loop, lambda: None)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_a_coroutines_result_is_handed_out_does_not_lose_it(
    call, loop, execution, watch
):
    results = []

    def interrupt_and_take(result):
        loop.call_soon(loop.stop)
        os.kill(os.getpid(), signal.SIGINT)
        results.append(result)

    runner = MainRunner(loop, execution, watch, contextvars.copy_context)
    runner.start(call, interrupt_and_take)
    loop.call_later(LIMIT, loop.stop)
    loop.run_forever()
    assert [result.content[0].text for result in results] == ["the answer"]
    loop.run_until_complete(asyncio.sleep(0))
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_cancel_just_as_a_coroutine_in_a_thread_has_ended_does_nothing(
    call, loop, execution, watch
):
    results, ended = [], threading.Event()

    def cancel_and_take(result):
        # The canceller took what interrupts the code while it ran, and uses it only now.
        interrupt = call.request_stop(UNWANTED)
        try:
            interrupt()
            results.append(result)
        finally:
            ended.set()

    runner = ThreadRunner(loop, execution, watch, contextvars.copy_context)
    runner.start(call, cancel_and_take)
    assert ended.wait(LIMIT)
    assert [result.content[0].text for result in results] == ["the answer"]
