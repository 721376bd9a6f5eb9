"""The environment of calls in the test's own process."""

import asyncio
import signal
import threading
from types import SimpleNamespace

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.payload import PayloadManager

from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.execution import Execution
from mcp_notebook.kernel.calls.interrupts import InterruptWatch
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.runners import Cells, InlineRunner, MainRunner, ThreadRunner
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

LIMIT = 30


@pytest.fixture
def shell(formatter):
    """What calls use of IPython; it collects what cells display."""
    return SimpleNamespace(
        display_pub=CapturingDisplayPublisher(),
        display_formatter=formatter,
        displayhook=SimpleNamespace(),
        payload_manager=PayloadManager(),
        magics_manager=SimpleNamespace(registry={}),
        showtraceback=print,
        ask_exit=print,
        user_ns={},
    )


@pytest.fixture
def loop():
    """The main thread's event loop."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture
def environment(shell, loop, converter):
    """An environment that is closed after the test."""
    environment = CallEnvironment(shell, loop, CallConverter(converter).format_display)
    yield environment
    environment.close()


@pytest.fixture
def registry():
    """The tools of a notebook: none yet."""
    return ToolRegistry(lambda: None)


@pytest.fixture
def queue():
    """A queue without calls."""
    return CallQueue(10)


@pytest.fixture
def execution(registry, environment, converter, queue):
    """What runs the code of the calls of `queue`."""
    call_converter = CallConverter(converter)
    stopper = Stopper(queue, call_converter, None)
    return Execution(registry, environment, call_converter, stopper)


@pytest.fixture
def watch(loop):
    """A watch in a process that ignores SIGINT, as ipykernel does between cells."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield InterruptWatch(loop, lambda: None, lambda: False)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run_on_main(loop, execution, watch, queue):
    """A function that runs a call on the main thread, and returns its result."""

    def run(call):
        results = []

        def take(result):
            results.append(result)
            loop.call_soon(loop.stop)

        runner = MainRunner(
            loop, execution, watch, Cells(execution.environment), choose=queue.choose
        )
        runner.start(call, take)
        too_late = loop.call_later(LIMIT, loop.stop)
        loop.run_forever()
        too_late.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        [result] = results
        return result

    return run


@pytest.fixture
def run_in_thread(loop, execution, watch):
    """A function that runs a call in a thread of its own, and returns its result."""

    def run(call):
        results, ended = [], threading.Event()

        def take(result):
            results.append(result)
            ended.set()

        ThreadRunner(loop, execution, watch, Cells(execution.environment)).start(call, take)
        assert ended.wait(LIMIT)
        [result] = results
        return result

    return run


@pytest.fixture
def run_inline(execution):
    """A function that runs a call inside a cell, and returns its result."""

    def run(call):
        results = []
        InlineRunner(execution).start(call, results.append)
        [result] = results
        return result

    return run
