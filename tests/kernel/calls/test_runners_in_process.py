"""Moments of calls that a client cannot time: an interrupt or a cancel at the first or the last."""

import asyncio
import builtins
import contextlib
import gc
import os
import signal
import threading
from typing import Annotated

import pydantic
import pytest

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.runners import Cells, MainRunner, ThreadRunner
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions

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


@pytest.fixture(params=["run_on_main", "run_in_thread", "run_inline"])
def run(request):
    """A function that runs a call, and returns its result; one for each place."""
    return request.getfixturevalue(request.param)


def test_an_interrupt_while_a_coroutines_result_is_handed_out_does_not_lose_it(
    call, loop, execution, watch, queue
):
    results = []

    def interrupt_and_take(result):
        loop.call_soon(loop.stop)
        os.kill(os.getpid(), signal.SIGINT)
        results.append(result)

    runner = MainRunner(loop, execution, watch, Cells(execution.environment), choose=queue.choose)
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

    runner = ThreadRunner(loop, execution, watch, Cells(execution.environment))
    runner.start(call, cancel_and_take)
    assert ended.wait(LIMIT)
    assert [result.content[0].text for result in results] == ["the answer"]


def cancel_elsewhere(call):
    """Cancel a call from another thread, and give what that raises here the time to be raised."""
    interrupt = call.request_stop(UNWANTED)
    if interrupt is not None:
        thread = threading.Thread(target=interrupt)
        thread.start()
        thread.join()
    for _ in range(1_000):
        pass


@pytest.mark.parametrize("moment", ["__init__", "close"])
def test_a_cancel_while_the_loop_of_a_call_is_made_or_closed_leaves_nothing_open(
    call, run_in_thread, monkeypatch, moment
):
    loops = []
    original = getattr(asyncio.SelectorEventLoop, moment)

    def cancel_and_go_on(loop):
        loops.append(loop)
        cancel_elsewhere(call)
        original(loop)

    loop_type = type("Loop", (asyncio.SelectorEventLoop,), {moment: cancel_and_go_on})
    monkeypatch.setattr(asyncio, "SelectorEventLoop", loop_type)
    assert "No longer wanted." in run_in_thread(call).content[0].text
    assert [loop.is_closed() for loop in loops] == [True]


def test_a_call_that_cannot_have_a_loop_fails_and_leaves_no_coroutine(
    call, run_in_thread, monkeypatch
):
    def refuse():
        raise OSError("Too many open files")

    monkeypatch.setattr(asyncio, "SelectorEventLoop", refuse)
    assert "Too many open files" in run_in_thread(call).content[0].text
    gc.collect()  # a coroutine that was never awaited would be a warning, and so an error


def test_a_coroutine_function_of_a_call_that_has_to_stop_never_begins(run, queue, registry):
    began = []

    @pydantic.BeforeValidator
    def cancel(value):
        with contextlib.suppress(KeyboardInterrupt):
            cancel_elsewhere(call)
        return value

    async def begin(value: Annotated[int, cancel]) -> None:
        """Begin."""
        began.append(value)

    registry.add(make_tool(begin))
    call = ActiveCall("begin", {"value": 1}, reply=lambda _: None, lock=queue.lock)
    queue.add(call)
    assert "No longer wanted." in run(call).content[0].text
    assert began == []
    gc.collect()


# -- a cancel before the code has begun ------------------------------------------------------------


class CancelledAtBegin(ActiveCall):
    """A call that is cancelled when it has just begun, before anything can interrupt its code."""

    def begin(self, interrupt):
        begun = super().begin(interrupt)
        cancel_elsewhere(self)
        return begun


class CancelledAtHandOver(ActiveCall):
    """A call that is cancelled while its coroutine is handed to a loop."""

    def set_interrupt(self, interrupt):
        cancel_elsewhere(self)
        super().set_interrupt(interrupt)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "coroutine"])
def test_a_call_that_is_cancelled_as_it_begins_runs_no_code(run, is_async, queue, registry):
    began = []

    def sync() -> None:
        """Begin."""
        began.append("sync")

    async def coroutine() -> None:
        """Begin."""
        began.append("coroutine")

    registry.add(make_tool(coroutine if is_async else sync, ToolOptions(name="begin")))
    call = CancelledAtBegin("begin", reply=lambda _: None, lock=queue.lock)
    queue.add(call)
    result = run(call)
    assert (result.is_error, result.content[0].text) == (True, "No longer wanted.")
    assert began == []


def test_a_coroutine_that_is_cancelled_as_it_is_handed_over_ends(run, queue, registry):
    async def wait() -> None:
        """Wait for ever."""
        await asyncio.sleep(10 * LIMIT)

    registry.add(make_tool(wait))
    call = CancelledAtHandOver("wait", reply=lambda _: None, lock=queue.lock)
    queue.add(call)
    result = run(call)
    assert (result.is_error, result.content[0].text) == (True, "No longer wanted.")


def test_a_call_puts_everything_back(run, call, loop, shell):
    def take_stock():
        display = shell.display_pub.publish, shell.display_formatter.format
        return (*display, builtins.input, loop.create_task, signal.getsignal(signal.SIGINT))

    before = take_stock()
    assert run(call).content[0].text == "the answer"
    assert take_stock() == before
