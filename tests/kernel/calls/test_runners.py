"""Calls beside each other: in threads, in executors, as coroutines, in a cell; how they stop."""

import os
import select
import signal

import pytest
from live import Link, kernel_with, record_of, text_of, until

from mcp_notebook.wire import messages

TOOLS = '''
import asyncio, logging, pathlib, sys, threading, time, warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from IPython.display import Markdown, display
from mcp_notebook import Context, mcp_tool

log = logging.getLogger("tools")
steps = {}

@mcp_tool(run="thread")
def threaded(seconds: float = 0) -> str:
    """Wait, in Python."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.005)
    return threading.current_thread().name

@mcp_tool(run="thread")
async def threaded_coroutine(seconds: float = 0) -> str:
    """Wait, as a coroutine."""
    print("waits")
    await asyncio.sleep(seconds)
    return threading.current_thread().name

@mcp_tool(run="thread")
def deaf() -> str:
    """Wait, in C."""
    released.wait()
    return "woke up"

released = threading.Event()

@mcp_tool
def asleep(seconds: float) -> str:
    """Wait on the main thread."""
    time.sleep(seconds)
    return "woke up"

@mcp_tool
def note_turn(who: str) -> str:
    """Tell whose turn it is."""
    return who

@mcp_tool
async def coroutine(seconds: float = 0) -> str:
    """Wait on the loop."""
    await asyncio.sleep(seconds)
    return "woke up"

@mcp_tool
async def blocking_coroutine(seconds: float) -> str:
    """Wait, and hold the loop."""
    await asyncio.sleep(0)
    time.sleep(seconds)
    return "woke up"

@mcp_tool
async def blocking_task(seconds: float) -> str:
    """Wait for a task that holds the loop."""
    async def hold():
        time.sleep(seconds)
    await asyncio.create_task(hold())

@mcp_tool
def stubborn(until: str) -> str:
    """Do not react to interrupts until there is a file."""
    while not pathlib.Path(until).exists():
        try:
            time.sleep(0.05)
        except KeyboardInterrupt:
            pass
    return "went on"

@mcp_tool(run="thread")
def distracted() -> None:
    """Lose one interrupt, as in a finalizer."""
    try:
        wait("/none")
    except KeyboardInterrupt:
        pass
    try:
        wait("/none")
    finally:
        stopped.set()

stopped = threading.Event()

def clean_up(file: str) -> None:
    """Wait, then clean up for a second; begin anew when it is interrupted."""
    try:
        wait("/none")
    finally:
        while not pathlib.Path(file).exists():
            try:
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    time.sleep(0.01)
                pathlib.Path(file).touch()
            except KeyboardInterrupt:
                pass

mcp_tool(clean_up, name="tidy")
mcp_tool(clean_up, name="tidy_thread", run="thread")

@mcp_tool(run="thread", max_concurrency=2)
def few(number: int) -> int:
    """How many run with this one."""
    steps[number] = True
    time.sleep(0.02)
    together = len(steps)
    del steps[number]
    return together

@mcp_tool(timeout=0.2)
def limited() -> None:
    """Run for ever."""
    while True:
        pass

@mcp_tool(timeout=0.2)
async def limited_coroutine() -> None:
    """Run for ever."""
    await asyncio.sleep(600)

@mcp_tool(timeout=0.2, run="thread")
def limited_thread() -> None:
    """Run for ever."""
    while True:
        time.sleep(0.01)

@mcp_tool(run="thread")
def asks(ctx: Context) -> str:
    """Stop when asked to."""
    while not ctx.cancelled:
        time.sleep(0.01)
    asked.set()
    return "asked"

asked = threading.Event()

def _say(name, number):
    print(name, number)
    display(Markdown(f"{name} {number}"))
    log.warning("%s %s", name, number)
    print(name, number, file=sys.stderr)

async def _talk(name, pauses):
    for number, pause in enumerate(pauses):
        _say(name, number)
        await asyncio.sleep(pause / 1000)

@mcp_tool
async def talk_on_the_loop(name: str, pauses: list[int]) -> None:
    """Talk."""
    await _talk(name, pauses)

@mcp_tool
def talk_on_main(name: str, pauses: list[int]) -> None:
    """Talk."""
    for number, pause in enumerate(pauses):
        _say(name, number)
        time.sleep(pause / 1000)

@mcp_tool(run="thread")
def talk_in_a_thread(name: str, pauses: list[int]) -> None:
    """Talk."""
    for number, pause in enumerate(pauses):
        _say(name, number)
        time.sleep(pause / 1000)

def square(x: int) -> int:
    """Square."""
    return x * x

def wait(until: str = "/", begun: str = "/dev/null") -> str:
    """Create a file in another process, and wait there until there is another."""
    pathlib.Path(begun).touch()
    while not pathlib.Path(until).exists():
        time.sleep(0.01)
    return "woke up"

def broken() -> None:
    """Fail in another process."""
    raise ValueError("on purpose")

in_processes = mcp_tool(executor=ProcessPoolExecutor(1))
for function in (square, wait, broken):
    in_processes(function)
'''


kernel = kernel_with(TOOLS, kernel="hasty_kernel")


def until_call(link, tool, doing="running"):
    """Wait until the kernel says that a call of this tool is running, or waiting."""

    def is_doing():
        with Link(link.record) as other:
            calls = other.welcome.calls
        return any(call.tool == tool and call.doing.startswith(doing) for call in calls)

    until(is_doing)


def interrupted(kernel, link):
    """Press "Interrupt", again if it came before the call's code, and return the result."""

    def is_answered():
        os.kill(kernel.pid, signal.SIGINT)
        # Longer than the answer is held back: the next one would stop the call that waits.
        return select.select([link.socket], [], [], 3)[0]

    until(is_answered)
    return link.result()


def test_the_users_call_begins_before_waiting_ones_of_guests_who_take_turns(kernel, link):
    with kernel.busy():
        for number, guest in enumerate(["a", "a", "a", "b", "b", ""], start=100):
            arguments = {"who": guest or "user"}
            call = messages.Call(id=number, tool="note_turn", arguments=arguments, guest=guest)
            link.send(call)
        with Link(link.record) as other:
            doing = [call.doing.rpartition("; ")[2] for call in other.welcome.calls]
    turns = [text_of(link.result()) for _ in range(6)]
    assert turns == ["user", "a", "b", "a", "b", "a"]
    assert doing[0] == "1 call before this one"
    assert doing[2] == "5 calls before this one"
    assert doing[5].startswith("waiting: a cell has been running")


@pytest.mark.smoke
@pytest.mark.parametrize("tool", ["threaded", "threaded_coroutine"])
def test_a_tool_in_a_thread_runs_while_a_cell_runs(kernel, link, tool):
    with kernel.busy():
        assert text_of(link.call(tool)).endswith(f"mcp-notebook-{tool}")


def test_what_a_thread_prints_while_a_cell_runs_is_in_its_result_and_not_in_the_cell(kernel, link):
    with kernel.busy():
        assert text_of(link.call("threaded_coroutine")).startswith("waits\n")
    # The cell's end put back what it found in stdout: it must still be routed.
    assert text_of(link.call("threaded_coroutine")).startswith("waits\n")
    assert kernel.ok("print('mine')").stdout == "mine\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("threaded", {"seconds": 600}),
        ("threaded_coroutine", {"seconds": 600}),
        ("asleep", {"seconds": 600}),
        ("coroutine", {"seconds": 600}),
        ("blocking_coroutine", {"seconds": 600}),
        ("blocking_task", {"seconds": 600}),
        ("asks", {}),
    ],
)
@pytest.mark.parametrize("who", ["client", "user"])
def test_a_running_call_is_stopped_by_its_client_and_by_the_user(
    kernel, link, tool, arguments, who
):
    call = link.start(tool, **arguments)
    until_call(link, tool)
    if who == "client":
        link.send(messages.Cancel(id=call, reason="No longer wanted."))
        result = link.result()
    else:
        result = interrupted(kernel, link)
    assert result.is_error
    assert ("No longer wanted" if who == "client" else "user interrupted") in text_of(result)
    assert text_of(link.call("square", x=3)) == "9"
    assert kernel.ok("print('well')").stdout == "well\n"


HERE = """
@mcp_tool
def asleep_here() -> None:
    'Wait in the cell.'
    print_began()
    time.sleep(600)

@mcp_tool
async def coroutine_here() -> None:
    'Wait in the cell.'
    print_began()
    await asyncio.sleep(600)

def print_began():
    os.write(cell_began, b"began")
"""


@pytest.mark.parametrize("tool", ["asleep_here", "coroutine_here"])
def test_a_call_inside_a_cell_is_stopped_by_the_user(kernel, tool, tmp_path):
    os.mkfifo(tmp_path / "began")
    kernel.ok(f"import os\ncell_began = os.open({str(tmp_path / 'began')!r}, os.O_RDWR)")
    kernel.ok(HERE)
    request = kernel.start(f"%mcp call {tool}")
    with (tmp_path / "began").open("rb", buffering=0) as began:
        assert began.read(5) == b"began"
    os.kill(kernel.pid, signal.SIGINT)
    output = kernel.finish(request)
    assert output.error is None
    assert "The user interrupted the call in the notebook." in output.text
    kernel.ok("os.close(cell_began)\ndel asleep_here, coroutine_here")


IN_A_POOL = """
from concurrent.futures import ThreadPoolExecutor
pool, may_end = ThreadPoolExecutor(1), threading.Event()

@mcp_tool(executor=pool)
def pooled() -> None:
    'Wait in a pool.'
    print_began()
    may_end.wait()

def print_began():
    os.write(cell_began, b"began")
"""
UNNOTICED = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # another thread takes it
try:
    get_ipython().run_line_magic("mcp", "call pooled")
finally:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    may_end.set()
"""


@pytest.mark.timeout(30)
def test_an_interrupt_that_does_not_end_the_wait_for_a_pool_stops_the_call(kernel, tmp_path):
    # As one does that comes just before the main thread begins to wait.
    os.mkfifo(tmp_path / "began")
    kernel.ok(f"import os, signal\ncell_began = os.open({str(tmp_path / 'began')!r}, os.O_RDWR)")
    kernel.ok(IN_A_POOL)
    request = kernel.start(UNNOTICED)
    with (tmp_path / "began").open("rb", buffering=0) as began:
        assert began.read(5) == b"began"
    os.kill(kernel.pid, signal.SIGINT)
    assert "interrupted the call" in kernel.finish(request).text
    kernel.ok("os.close(cell_began)\npool.shutdown()\ndel pooled")


SYNC_CELL = "time.sleep(600)"
# A signal does not always wake a loop that has nothing to do: ipykernel's handler needs its turn.
ASYNC_CELL = "for _ in range(60_000): await asyncio.sleep(0.01)"


@pytest.mark.parametrize(
    ("cell", "tools", "error"),
    [
        (SYNC_CELL, (["coroutine"], ["threaded"]), "KeyboardInterrupt"),
        (ASYNC_CELL, (["coroutine"], ["threaded"]), "CancelledError"),
        (ASYNC_CELL, ([], ["coroutine"]), "CancelledError"),
    ],
)
def test_the_users_interrupt_of_a_cell_stops_it_and_no_call_beside_it(
    kernel, link, cell, tools, error
):
    tools_before, tools_after = tools
    calls = []

    def start(tools):
        for tool in tools:
            calls.append(link.start(tool, seconds=600))
            until_call(link, tool)

    start(tools_before)
    request = kernel.start(f"print('began', flush=True)\n{cell}")
    while "began" not in kernel.wait_for("stream")["text"]:
        pass
    start(tools_after)
    os.kill(kernel.pid, signal.SIGINT)
    assert kernel.finish(request).error.startswith(error)
    with Link(record_of(kernel)) as other:
        running = [item.tool for item in other.welcome.calls]
    for call in calls:
        link.send(messages.Cancel(id=call, reason="No longer wanted."))
        assert "No longer wanted." in text_of(link.result())
    assert running == tools_before + tools_after


def test_code_that_does_not_come_back_to_python_is_answered_and_shown_as_still_stopping(
    kernel, link
):
    call = link.start("deaf")
    until_call(link, "deaf")
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    assert "No longer wanted" in text_of(link.result())
    assert "deaf() (unknown client): stopping" in kernel.ok("%mcp status").text
    kernel.ok("released.set()")


def test_code_that_missed_two_interrupts_is_interrupted_once_more(kernel, link):
    kernel.ok(MISSES)
    call = link.start("misses")
    until_call(link, "misses")
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    assert "No longer wanted" in text_of(link.result())
    assert text_of(link.call("asleep", seconds=0)) == "woke up"


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["tidy", "tidy_thread"])
def test_code_that_is_interrupted_while_it_cleans_up_has_longer_and_longer_for_it(
    kernel, link, tool, tmp_path
):
    call = link.start(tool, file=str(tmp_path / "tidied"))
    until_call(link, tool)
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    assert "No longer wanted" in text_of(link.result())
    until((tmp_path / "tidied").exists)


def test_who_waits_behind_code_that_does_not_react_is_told_so(link, tmp_path):
    release = tmp_path / "release"
    call = link.start("stubborn", until=str(release))
    until_call(link, "stubborn")
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    assert "No longer wanted" in text_of(link.result())
    link.start("asleep", progress=True, seconds=0)
    while not isinstance(told := link.receive(), messages.Progress):
        pass
    assert told.message.startswith("waiting: a stopped call of 'stubborn' has not reacted")
    release.touch()
    assert text_of(link.result()) == "woke up"


@pytest.mark.smoke
@pytest.mark.parametrize("tool", ["limited", "limited_coroutine", "limited_thread"])
def test_a_call_that_is_too_slow_is_stopped_and_told_the_limit(link, tool):
    result = link.call(tool)
    assert result.is_error
    assert f"'{tool}' was stopped: it ran longer than 0.2 s" in text_of(result)
    assert "timeout=" in text_of(result)
    assert text_of(link.call("square", x=2)) == "4"


def test_the_time_in_the_queue_does_not_count(kernel, link):
    with kernel.busy():
        link.start("limited", progress=True)
        while "waiting" not in (link.receive().message or ""):
            pass
        with Link(record_of(kernel)) as other:
            (call,) = other.welcome.calls
        assert call.doing.startswith("waiting: a cell has been running")
    assert "ran longer than" in text_of(link.result())


MISSES = """
import signal

@mcp_tool
def misses() -> None:
    "Wait in C; two signals come at moments at which nothing hears them."
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for _ in range(2):
        signal.sigwait({signal.SIGINT})
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    time.sleep(600)
"""

HELD = """
import signal

@mcp_tool
def held(ctx: Context) -> None:
    "Compute until it is stopped."
    ctx.progress(1)
    while True:
        pass

@mcp_tool
def held_asleep(ctx: Context) -> None:
    "Wait in C until it is stopped."
    ctx.progress(1)
    time.sleep(600)

@mcp_tool(max_concurrency=1)
async def held_coroutine(ctx: Context) -> None:
    "Wait on the loop until it is stopped."
    ctx.progress(1)
    await asyncio.sleep(600)

@mcp_tool
async def held_step(ctx: Context) -> None:
    "Hold the loop until it is stopped."
    await asyncio.sleep(0)
    ctx.progress(1)
    while True:
        pass

@mcp_tool(run="thread")
def held_thread(ctx: Context) -> None:
    "Compute in a thread until it is stopped."
    ctx.progress(1)
    while True:
        time.sleep(0.001)

@mcp_tool(run="thread")
async def held_thread_coroutine(ctx: Context) -> None:
    "Wait on the loop of a thread until it is stopped."
    ctx.progress(1)
    await asyncio.sleep(600)
"""
HELD_TOOLS = (
    "held",
    "held_asleep",
    "held_coroutine",
    "held_step",
    "held_thread",
    "held_thread_coroutine",
)


@pytest.fixture(scope="module")
def held(kernel):
    kernel.ok(HELD)


def start_held(link, tool):
    """Start a call, wait until its code runs, and return the id."""
    call = link.start(tool, progress=True)
    told = link.receive_until(lambda message: getattr(message, "progress", None) == 1)
    assert {message.id for message in told} == {call}
    return call


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("tool", HELD_TOOLS)
def test_a_cancel_while_the_code_runs_stops_that_call_and_no_other(kernel, link, tool):
    for number in range(2 if tool == "held_step" else 10):  # a step is given a while first
        call = start_held(link, tool)
        link.send(messages.Cancel(id=call, reason="No longer wanted."))
        link.send(messages.Cancel(id=call, reason="Once more."))
        cancelled = link.result()
        assert (cancelled.is_error, text_of(cancelled)) == (True, "No longer wanted.")
        after = link.call("asleep", seconds=0)
        assert (after.is_error, text_of(after)) == (False, "woke up")
        if number == 0:
            assert kernel.ok("print(sum(range(1000)))").text.strip() == "499500"


@pytest.mark.usefixtures("held")
def test_a_cancel_before_and_after_the_code_runs_stops_nothing_else(kernel, link):
    for _ in range(10):
        first = start_held(link, "held_asleep")
        waits = link.start("asleep", seconds=600)
        last = link.start("asleep", seconds=0)
        link.send(messages.Cancel(id=waits, reason="Before it began."))
        assert text_of(link.result()) == "Before it began."
        link.send(messages.Cancel(id=first, reason="While it ran."))
        assert text_of(link.result()) == "While it ran."
        assert text_of(link.result()) == "woke up"
        for call in (first, waits, last):
            link.send(messages.Cancel(id=call, reason="After it ended."))
        assert text_of(link.call("coroutine")) == "woke up"
    assert kernel.ok("print(sum(range(1000)))").text.strip() == "499500"


@pytest.mark.usefixtures("held")
def test_the_users_interrupt_stops_the_coroutine_that_runs_and_not_those_that_wait(kernel, link):
    start_held(link, "held_coroutine")
    waits = link.start("held_coroutine")
    until_call(link, "held_coroutine", "waiting")
    assert "user interrupted" in text_of(interrupted(kernel, link))
    until_call(link, "held_coroutine", "running")
    link.send(messages.Cancel(id=waits, reason="No longer wanted."))
    assert text_of(link.result()) == "No longer wanted."


@pytest.mark.usefixtures("held")
def test_after_a_call_that_was_stopped_an_interrupt_is_heard_as_before(kernel, link):
    """No handler, and no signal, is left over."""
    between = (
        "import asyncio, signal\nhandlers = []\nasyncio.get_event_loop().call_later("
        "0, lambda: handlers.append(signal.getsignal(signal.SIGINT)))"
    )

    def read_handler():
        kernel.ok(between)

        def read():
            return kernel.ok("print(*handlers)").stdout.strip()

        return until(read)

    before = read_handler()
    for tool in HELD_TOOLS:
        link.send(messages.Cancel(id=start_held(link, tool)))
        assert link.result().is_error
        until(lambda: "Running" not in kernel.ok("%mcp status").text)
        assert read_handler() == before
    request = kernel.start("print('began', flush=True)\ntime.sleep(600)")
    while "began" not in kernel.wait_for("stream")["text"]:
        pass
    os.kill(kernel.pid, signal.SIGINT)
    assert kernel.finish(request).error.startswith("KeyboardInterrupt")
