"""Interrupts of calls: what the gates let through, and who hears the user's "Interrupt"."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from live import kernel_with, text_of

from mcp_notebook.kernel.calls.interrupts import InterruptGate, InterruptWatch, Steps, ThreadGate

LIMIT = 30


@contextlib.contextmanager
def opened(gate):
    with gate:
        try:
            gate.open()
            yield
        finally:
            gate.close()


def wait_after(function):
    function()
    for _ in range(LIMIT * 100):
        time.sleep(0.01)  # a signal that comes just before one of these waits ends the next


def interrupt_when(event, gate):
    thread = threading.Thread(target=lambda: event.wait(LIMIT) and gate.interrupt())
    thread.start()
    return thread


@pytest.fixture(autouse=True)
def handler():
    """Check that each test leaves SIGINT's handler as it was."""
    before = signal.getsignal(signal.SIGINT)
    yield before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_call_on_the_main_thread_is_interrupted_by_another_thread():
    gate, began = InterruptGate(), threading.Event()
    thread = interrupt_when(began, gate)
    with pytest.raises(KeyboardInterrupt), opened(gate):
        wait_after(began.set)
    assert gate.interrupted
    thread.join()


def test_the_users_interrupt_is_the_calls_while_it_runs():
    gate = InterruptGate()
    with pytest.raises(KeyboardInterrupt), opened(gate):
        wait_after(lambda: os.kill(os.getpid(), signal.SIGINT))
    assert gate.interrupted


def test_an_interrupt_before_the_code_raises_when_the_gate_opens():
    gate = InterruptGate()
    with gate:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            gate.open()


def test_an_interrupt_that_the_code_has_caught_does_not_raise_when_the_gate_opens_again():
    gate = InterruptGate()
    with gate:
        gate.open()
        with contextlib.suppress(KeyboardInterrupt):
            wait_after(lambda: os.kill(os.getpid(), signal.SIGINT))
        gate.close()
        gate.open()
        gate.close()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            gate.open()


def test_an_interrupt_behind_the_code_raises_nothing():
    gate = InterruptGate()
    with opened(gate):
        pass
    with gate:
        gate.open()
        gate.close()
        signal.raise_signal(signal.SIGINT)


def test_a_handler_that_the_call_leaves_goes_with_it():
    with opened(InterruptGate()):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_a_gate_outside_of_the_main_thread_takes_nothing():
    def run():
        with opened(gate := InterruptGate()):
            return gate.interrupt()

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(run).result(LIMIT) is False


def test_a_call_in_a_thread_is_interrupted_between_two_instructions():
    began, gates = threading.Event(), []

    def run():
        gates.append(gate := ThreadGate())
        try:
            with opened(gate):
                began.set()
                end = time.monotonic() + LIMIT
                while time.monotonic() < end:
                    time.sleep(0.001)
        except KeyboardInterrupt:
            return "interrupted"

    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(run)
        assert began.wait(LIMIT)
        assert gates[0].interrupt() is True
        assert future.result(LIMIT) == "interrupted"


# -- the watch -------------------------------------------------------------------------------------


def run_on_loop(main):
    """Run a coroutine, with the handler that ipykernel has set between cells."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return asyncio.run(main())
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_watch_hears_an_interrupt_while_somebody_listens():
    async def main():
        heard = asyncio.Event()
        watch = InterruptWatch(asyncio.get_running_loop(), heard.set, lambda: False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # asyncio.run has put its own in place
        watch.acquire()
        watch.acquire()
        watch.release()
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(heard.wait(), LIMIT)
        watch.release()
        return signal.getsignal(signal.SIGINT)

    assert run_on_loop(main) is signal.SIG_IGN


def test_the_watch_leaves_a_cells_interrupt_to_the_cell_and_listens_when_it_has_ended():
    async def main():
        heard, looked = asyncio.Event(), asyncio.Event()

        class Watch(InterruptWatch):
            def _look_again(self):
                super()._look_again()
                looked.set()

        watch = Watch(asyncio.get_running_loop(), heard.set, lambda: False)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a cell runs
        watch.acquire()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it has ended
        looked.clear()
        await asyncio.wait_for(looked.wait(), LIMIT)
        assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(heard.wait(), LIMIT)
        watch.release()

    run_on_loop(main)


def test_the_earlier_handler_is_restored_after_the_last_listener():
    heard = []

    def earlier(*_):
        heard.append("earlier")

    async def main():
        watch = InterruptWatch(
            asyncio.get_running_loop(), lambda: heard.append("watch"), lambda: False
        )
        signal.signal(signal.SIGINT, earlier)
        watch.acquire()
        put_back_by_a_cell = signal.getsignal(signal.SIGINT)
        assert put_back_by_a_cell is not earlier
        watch.release()
        assert signal.getsignal(signal.SIGINT) is earlier
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, put_back_by_a_cell)
        signal.raise_signal(signal.SIGINT)  # nobody listens: it is the earlier handler's
        watch.acquire()
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        watch.release()
        return signal.getsignal(signal.SIGINT)

    assert run_on_loop(main) is earlier
    assert heard == ["earlier", "earlier", "watch"]


LIMIT = 30
TOOLS = '''%%mcp_tool
import asyncio, sys

async def _child(how):
    await asyncio.sleep(0)
    if how == "value":
        raise ValueError("bad")
    raise KeyboardInterrupt if how == "interrupt" else SystemExit(3)

async def wait_for(how: str) -> str:
    """Waits for a task that fails."""
    await asyncio.create_task(_child(how))

async def group(how: str) -> str:
    """The same in a group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_child(how))

async def outlived(how: str) -> str:
    """Does not wait for it."""
    global task
    task = asyncio.create_task(_child(how))
    return "returned"

async def never_begun() -> str:
    """Cancels a task before its first step."""
    task = asyncio.create_task(_child("exit"))
    task.cancel()
    await asyncio.wait([task])
    return str(task.cancelled())
'''


kernel = kernel_with(TOOLS)


@pytest.mark.parametrize("tool", ["wait_for", "group", "outlived"])
@pytest.mark.parametrize(
    ("how", "shown"),
    [("value", "ValueError"), ("interrupt", "KeyboardInterrupt"), ("exit", "SystemExit: 3")],
)
def test_whatever_a_task_of_a_tool_raises_the_kernel_lives_on(kernel, link, tool, how, shown):
    result = link.call(tool, how=how)
    assert (shown if tool != "outlived" else "returned") in text_of(result)
    assert "await asyncio.sleep" not in text_of(result)
    assert kernel.ok("await asyncio.sleep(0); print('well')").stdout == "well\n"


def test_a_task_that_never_began_causes_no_warning(kernel, link):
    assert text_of(link.call("never_begun")) == "True"
    assert kernel.ok("import gc; gc.collect(); None").text.strip() == ""


def test_a_step_is_interrupted_also_when_it_has_run_a_step_within_it():
    steps = Steps()

    def step():
        steps.run(list)
        threads.submit(steps.interrupt).result(LIMIT)

    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(KeyboardInterrupt):
            steps.run(step)
        assert steps.interrupted
        assert threads.submit(steps.interrupt).result(LIMIT) is False
