"""The environment of calls in the test's own process; links to a kernel with calls."""

import asyncio
from types import SimpleNamespace

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from live import Link, record_of

from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.calls.capture import OutputRouter
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.execution import Execution
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.result_cache import ResultCache
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


@pytest.fixture
def shell(formatter):
    """What calls use of IPython; it collects what cells display."""
    return SimpleNamespace(
        display_pub=CapturingDisplayPublisher(),
        display_formatter=formatter,
        showtraceback=print,
        ask_exit=print,
    )


@pytest.fixture
def loop():
    """The main thread's event loop."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture
def environment(shell, loop, converter):
    """An environment that is closed after the test."""
    environment = CallEnvironment(
        OutputRouter(shell, loop, CallConverter(converter).format_display)
    )
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
    stopper = Stopper(queue, call_converter, lambda _: None, None)
    return Execution(registry, ResultCache(), environment, call_converter, stopper)


@pytest.fixture
def link(kernel):
    """Yield a link to the kernel of the test's module."""
    with Link(record_of(kernel)) as link:
        yield link
