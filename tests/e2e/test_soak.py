"""Calls of every kind, many times: afterwards the kernel and the bridge are as before.

What a call takes it has to give back: threads, timers, places in queues, streams, handlers, files.
"""

import ast
import time
from collections import Counter
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import psutil
import pytest
from clients import COMMAND, ERAS, http_bridge, over_http, text_of
from limits_files import set_limits
from live import live_kernel

LIMIT = 30
AT_ONCE = 8
MANY = 300
"""Calls of each kind."""


TOOLS = '''
import asyncio, time
from concurrent.futures import ThreadPoolExecutor
from mcp_notebook import Context, mcp_tool

@mcp_tool
def sync(x: int) -> int:
    """Return a number, on the main thread."""
    print("a line")
    return x

@mcp_tool
async def coroutine(x: int) -> int:
    """Return a number, on the loop."""
    await asyncio.sleep(0)
    print("a line")
    return x

@mcp_tool(run="thread")
def thread(x: int) -> int:
    """Return a number, in a thread."""
    print("a line")
    return x

@mcp_tool(run="thread")
async def thread_coroutine(x: int) -> int:
    """Return a number, on the loop of a thread."""
    await asyncio.sleep(0)
    print("a line")
    return x

@mcp_tool(executor=ThreadPoolExecutor(1))
def executor(x: int) -> int:
    """Return a number, elsewhere."""
    return x

@mcp_tool
def fails(x: int) -> int:
    """Fail."""
    raise ValueError(x)

@mcp_tool
async def coroutine_fails(x: int) -> int:
    """Fail on the loop."""
    await asyncio.sleep(0)
    raise ValueError(x)

@mcp_tool(timeout=0.01)
def slow() -> None:
    """Take too long."""
    time.sleep(600)

@mcp_tool(timeout=0.01)
async def coroutine_slow() -> None:
    """Take too long on the loop."""
    await asyncio.sleep(600)

@mcp_tool(timeout=0.01, run="thread")
def thread_slow() -> None:
    """Take too long in a thread."""
    while True:
        time.sleep(0.001)

@mcp_tool(timeout=600)
def limited(x: int) -> int:
    """Return a number long before the limit."""
    return x

@mcp_tool
def held(ctx: Context) -> None:
    """Hold the main thread until it is stopped."""
    ctx.progress(1)
    time.sleep(600)

@mcp_tool
async def coroutine_held(ctx: Context) -> None:
    """Wait on the loop until it is stopped."""
    ctx.progress(1)
    await asyncio.sleep(600)

@mcp_tool(run="thread")
def thread_held(ctx: Context) -> None:
    """Wait in a thread until it is stopped."""
    ctx.progress(1)
    while True:
        time.sleep(0.001)

@mcp_tool(run="thread")
async def thread_coroutine_held(ctx: Context) -> None:
    """Wait on the loop of a thread until it is stopped."""
    ctx.progress(1)
    await asyncio.sleep(600)

@mcp_tool
async def asks(ctx: Context) -> str:
    """Ask."""
    return (await ctx.elicit_async("Go on?")).action
'''
RETURN = ("sync", "coroutine", "thread", "thread_coroutine", "executor", "limited")
FAIL = ("fails", "coroutine_fails")
TIME_OUT = ("slow", "coroutine_slow", "thread_slow")
HOLD = ("held", "coroutine_held", "thread_held", "thread_coroutine_held")

TAKE_STOCK = '''
import signal

_between_cells = []

def _take_stock():
    """Return all that a call could leave behind."""
    import collections, gc, os, sys, threading

    gc.collect()
    objects, counters, loops, timers = collections.Counter(), collections.Counter(), [], 0
    ours = ("mcp_notebook.kernel.calls", "mcp_notebook.kernel.link")
    for thing in gc.get_objects():
        kind = type(thing)
        if str(kind.__module__).startswith(ours):
            objects[kind.__qualname__] += 1
            for name in ("_depth", "_calls", "_open"):
                value = getattr(thing, name, None)
                if isinstance(value, (int, list, dict)):
                    size = value if isinstance(value, int) else len(value)
                    counters[f"{kind.__qualname__}.{name}"] += size
        elif asyncio.BaseEventLoop in kind.__mro__:
            loops.append((kind.__qualname__, thing.is_closed()))
            due = [str(timer) for timer in thing._scheduled if not timer.cancelled()]
            timers += sum("IOLoop._run_callback" not in timer for timer in due)  # the kernel's own
        elif kind in (asyncio.Task, threading.Timer):
            objects[kind.__qualname__] += 1
    return {
        "objects": dict(objects),
        "counters": dict(counters),
        "loops": sorted(loops),
        "timers": timers,
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "streams": [(id(s), str(type(s)), sorted(vars(s))) for s in (sys.stdout, sys.stderr)],
        "patches": _list_patches(),
        "signal": str(_between_cells[-1]),
        "files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
    }

def _list_patches():
    import builtins, getpass
    from IPython import get_ipython

    shell, loop = get_ipython(), asyncio.get_event_loop()
    functions = [
        (builtins, "input"), (getpass, "getpass"), (loop, "create_task"), (loop, "stop"),
        (shell, "showtraceback"), (shell, "ask_exit"), (shell.display_pub, "publish"),
        (shell.display_pub, "clear_output"), (shell.display_formatter, "format"),
    ]
    return [
        name
        for owner, name in functions
        if str(getattr(getattr(owner, name), "__module__", "")).startswith("mcp_notebook")
    ]
'''


@pytest.fixture(scope="module")
def kernel(module_home):
    """A kernel whose log of calls is as full at first as it ever gets."""
    with live_kernel(module_home) as kernel:
        kernel.ok("%load_ext mcp_notebook\nget_ipython()._mcp_notebook.invoker.log.most = 0")
        kernel.ok(TOOLS)
        kernel.ok(TAKE_STOCK)
        yield kernel


def take_stock(kernel):
    """Return what the kernel has now, and check that its cells have nothing but their own."""
    kernel.ok(
        "asyncio.get_event_loop().call_later("
        "0, lambda: _between_cells.append(signal.getsignal(signal.SIGINT)))"
    )
    while not ast.literal_eval(kernel.ok("print(len(_between_cells))").stdout):
        pass
    output = kernel.ok("print(_take_stock()); _between_cells.clear()")
    assert output.stderr == ""
    assert output.displays == []
    return ast.literal_eval(output.stdout)


def take_first_stock(kernel):
    """Return what the kernel has once all calls that were stopped have ended."""
    deadline = time.monotonic() + LIMIT
    while "InterruptWatch" in (stock := take_stock(kernel))["signal"]:
        assert time.monotonic() < deadline, stock
    return stock


def check_stock(kernel, before):
    """Check that the kernel has no more than it had, once all that was stopped has ended."""
    deadline = time.monotonic() + LIMIT
    while growth := list_growth(before, take_stock(kernel)):
        if time.monotonic() > deadline:
            break
    assert not growth, growth  # whole, as nobody can ask again after so many calls


def list_growth(before, now):
    """Return what there is more of, or what is another; less is none: something may just end."""
    growth = {}
    for name, value in now.items():
        if name in ("objects", "counters", "threads"):
            more = Counter(value) - Counter(before[name])
        elif name in ("timers", "files"):
            more = max(0, value - before[name])
        else:
            more = value if value != before[name] else None
        if more:
            growth[name] = (before[name], more)
    return growth


def wait_for_at_most(count, limit):
    """Wait until there are no more of something than there were."""
    deadline = time.monotonic() + LIMIT
    while count() > limit and time.monotonic() < deadline:
        pass
    assert count() <= limit


class Caller:
    """Calls tools through a bridge, with a user who declines everything."""

    def __init__(self, client):
        self.client = client

    @classmethod
    @asynccontextmanager
    async def connect(cls, served, era):
        """Connect to a bridge that runs."""

        async def decline(_context, _params):
            return types.ElicitResult(action="decline")

        async with over_http(served.url, era, elicitation_callback=decline) as client:
            await client.list_tools()
            yield cls(client)

    async def call(self, tool, said, **arguments):
        """Call a tool, and check what it says."""
        result = await self.client.call_tool(tool, arguments)
        assert said in text_of(result), tool

    async def cancel(self, tool):
        """Call a tool, and cancel the call while its code runs."""
        with anyio.CancelScope() as scope:

            async def stop(*_):
                scope.cancel()

            await self.client.call_tool(tool, {}, progress_callback=stop)
        assert scope.cancelled_caught

    async def call_each_kind(self, number):
        """Make calls of each kind, some of them at once."""
        for tool in RETURN:
            await self._repeat(number, self.call, tool, "1", x=1)
        for tool in FAIL:
            await self._repeat(number, self.call, tool, "ValueError: 1", x=1)
        for tool in TIME_OUT:
            await self._repeat(number, self.call, tool, "ran longer than 0.01 s")
        await self._repeat(number, self.call, "asks", "decline")
        for tool in HOLD:
            for _ in range(number):
                await self.cancel(tool)

    async def _repeat(self, number, function, *arguments, **options):
        async def work():
            nonlocal number
            while number > 0:
                number -= 1
                await function(*arguments, **options)

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(work)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(3 * AT_ONCE, marks=pytest.mark.slow),
        pytest.param(MANY, marks=[pytest.mark.exhaustive, pytest.mark.timeout(3600)]),
    ],
)
async def test_a_bridge_and_its_kernel_are_as_before_after_calls_of_every_kind(kernel, era, number):
    # One that forgot that calls of a kind have ended would be full.
    env = set_limits(kernel.home, max_caller_calls=2 * AT_ONCE)
    with http_bridge(kernel.home, env=env, command=COMMAND) as served:
        process = psutil.Process(served.process.pid)

        async with Caller.connect(served, era) as caller:
            await caller.call_each_kind(2 * AT_ONCE)
        files, threads = process.num_fds(), process.num_threads()
        before = take_first_stock(kernel)
        async with Caller.connect(served, era) as caller:
            await caller.call_each_kind(number)
            await caller.call("sync", "1", x=1)
        check_stock(kernel, before)
        wait_for_at_most(process.num_fds, files)
        wait_for_at_most(process.num_threads, threads)
