"""One call in a real kernel: what runs where, what is captured, what a failure becomes."""

import json
import os
import signal

import pytest
from live import Link, kernel_with, record_of, text_of, tools_of

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.wire import messages

TOOLS = '''%%mcp_tool
import asyncio, contextvars, decimal, os, sys, threading, time, warnings
from IPython.display import display, clear_output, Markdown
from mcp_notebook import Context

seen = []

def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b

async def async_add(a: int, b: int) -> int:
    """Add later."""
    print("before")
    await asyncio.sleep(0)
    print("after")
    return a + b

def where() -> str:
    """Where it runs."""
    return threading.current_thread().name

def total() -> int:
    """The notebook's variable, doubled."""
    return numbers * 2

def talk() -> str:
    """Print and show."""
    print("one")
    display(Markdown("**two**"))
    print("three", file=sys.stderr)
    return "four"

def update() -> None:
    """Displays that replace each other."""
    handle = display(Markdown("first"), display_id=True)
    handle.update(Markdown("second"))

def clear() -> None:
    """Clears its output."""
    print("gone")
    clear_output()
    print("kept")

def fail(kind: str) -> None:
    """Fail in many ways."""
    _deep(kind)

def _deep(kind):
    raise {"value": ValueError("bad value"), "interrupt": KeyboardInterrupt(),
           "exit": SystemExit(3), "base": BaseException("base"),
           "group": ExceptionGroup("many", [ValueError("a")])}[kind]

async def async_fail(kind: str) -> None:
    """Fail in many ways, later."""
    await asyncio.sleep(0)
    _deep(kind)

def ask() -> str:
    """Ask."""
    return input("name? ")

def sleep(seconds: float, ctx: Context) -> str:
    """Sleep."""
    seen.append("began")
    ctx.progress(1)
    time.sleep(seconds)
    return "slept"

async def async_sleep(seconds: float) -> str:
    """Sleep, on the loop."""
    await asyncio.sleep(seconds)
    return "slept"

def precision() -> int:
    """The decimal precision that a cell would see."""
    return decimal.getcontext().prec

def replace_stdout() -> str:
    """Puts something else in place of stdout."""
    import io
    sys.stdout = io.StringIO()
    print("lost")
    return "replaced"

def handler(ctx: Context, seconds: float = 0) -> str:
    """Leaves a SIGINT handler of its own."""
    import signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctx.progress(1)
    time.sleep(seconds)
    return "left"

async def in_thread() -> None:
    """Prints and shows in another thread."""
    await asyncio.to_thread(lambda: (print("printed"), display(Markdown("shown"))))

def fork_in_generator():
    """Its child comes back out of a generator."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    yield "parent" if pid else "child"

async def fork_in_coroutine() -> str:
    """Its child comes back to the loop."""
    pid = os.fork()
    await asyncio.sleep(0)
    if pid:
        os.waitpid(pid, 0)
    return "parent" if pid else "child"

def end(how: str) -> None:
    """Ends the kernel, if nothing prevents it."""
    {"exit": exit, "quit": quit, "loop": asyncio.get_event_loop().stop}[how]()
'''


kernel = kernel_with(TOOLS, kernel="hasty_kernel")


def wait_for_report(link):
    """Wait until the code of a call reports that it runs."""
    link.receive_until(lambda message: getattr(message, "progress", None) == 1)


@pytest.mark.smoke
def test_a_sync_tool_runs_on_the_main_thread(link):
    assert text_of(link.call("where")) == "MainThread"
    assert text_of(link.call("add", a=1, b=2)) == "3"


@pytest.mark.smoke
def test_a_coroutine_tool_runs_on_the_kernels_loop(link):
    assert text_of(link.call("async_add", a=1, b=2)).split() == ["before", "after", "3"]


@pytest.mark.smoke
def test_a_rebound_variable_is_seen_by_the_next_call(kernel, link):
    kernel.ok("numbers = 2")
    assert text_of(link.call("total")) == "4"
    kernel.ok("numbers = 5")
    assert text_of(link.call("total")) == "10"


@pytest.mark.smoke
def test_prints_and_displays_come_in_order_and_never_show_in_a_cell(kernel, link):
    result = link.call("talk")
    assert [block.text.strip() for block in result.content] == ["one", "**two**", "three", "four"]
    assert kernel.ok("None").text.strip() == ""


def test_an_updated_display_replaces_the_first(link):
    assert text_of(link.call("update")) == "second"


def test_cleared_output_is_gone(link):
    assert text_of(link.call("clear")).strip() == "kept"


def test_a_cell_that_runs_after_a_call_prints_to_itself(kernel, link):
    link.call("talk")
    assert kernel.ok("print('mine'); display('shown')").text.split() == ["mine", "'shown'"]


def test_the_streams_are_as_they_were_after_a_call(kernel, link):
    kernel.ok("before = (sys.stdout.write.__qualname__, input, display)")
    link.call("talk")
    assert (
        kernel.ok("print((sys.stdout.write.__qualname__, input, display) == before)").stdout
        == "True\n"
    )


@pytest.mark.parametrize("tool", ["fail", "async_fail"])
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("value", "ValueError: bad value"),
        ("interrupt", "KeyboardInterrupt"),
        ("exit", "SystemExit: 3"),
        ("base", "BaseException: base"),
        ("group", "ExceptionGroup: many"),
    ],
)
def test_whatever_a_tool_raises_is_a_result_and_hurts_nothing(kernel, link, tool, kind, shown):
    result = link.call(tool, kind=kind)
    assert result.is_error
    assert shown in text_of(result)
    assert "_deep(kind)" in text_of(result)
    assert "mcp_notebook" not in text_of(result)
    assert text_of(link.call("add", a=1)) == "2"
    assert kernel.ok("print('well')").stdout == "well\n"


def test_a_tool_that_was_deleted_is_named_with_the_reason(kernel, link):
    kernel.ok("%%mcp_tool\ndef brief():\n    return 1")
    kernel.ok("del brief")
    result = link.call("brief")
    assert result.is_error
    assert "'brief' is gone. `brief` was deleted. That was at " in text_of(result)


@pytest.mark.smoke
def test_a_call_waits_for_the_cell_that_runs_and_says_so(kernel, link):
    with kernel.busy():
        link.start("add", progress=True, a=1)
        told = link.receive()
        assert isinstance(told, messages.Progress)
        assert "a cell has been running" in told.message
    assert text_of(link.result()) == "2"


def test_a_call_sees_the_context_of_the_cells(kernel, link):
    kernel.ok("decimal.getcontext().prec = 7")
    assert text_of(link.call("precision")) == "7"


def test_a_waiting_call_is_cancelled_while_the_cell_that_it_waits_for_runs_on(kernel, link):
    with kernel.busy():
        call = link.start("sleep", seconds=30)
        link.send(messages.Cancel(id=call, reason="No longer wanted."))
        assert "No longer wanted" in text_of(link.result())


def test_the_users_interrupt_stops_the_running_tool_and_those_behind_it_run(kernel, link):
    kernel.ok("seen.clear()")
    link.start("sleep", progress=True, seconds=60)
    for number in range(3):
        link.start("add", a=number)
    wait_for_report(link)
    os.kill(kernel.pid, signal.SIGINT)
    texts = [text_of(link.result()) for _ in range(4)]
    texts.sort(key=len)  # the answer of the interrupted one is held back for a moment
    assert texts[:3] == ["1", "2", "3"]
    assert "user interrupted" in texts[3]
    assert kernel.ok("print(seen)").stdout == "['began']\n"


def test_the_call_of_a_bridge_that_was_killed_runs_to_its_end(kernel, link):
    kernel.ok("go, ended = threading.Event(), threading.Event()")
    kernel.ok(
        "%%mcp_tool --run thread\ndef until_told(ctx: Context) -> None:\n    'Waits.'\n"
        "    ctx.progress(1)\n    go.wait(60)\n    ended.set()"
    )
    with Link(record_of(kernel)) as other:
        other.start("until_told", progress=True)
        wait_for_report(other)
    with Link(record_of(kernel)) as new:
        assert [call.tool for call in new.welcome.calls] == ["until_told"]
    kernel.ok("go.set()")
    kernel.ok("del until_told")
    kernel.ok("assert ended.wait(60)")


def test_a_question_that_a_thread_of_a_call_has_left_open_ends_with_the_call(kernel, link):
    kernel.ok("go, outcome = threading.Event(), []")
    kernel.ok(
        "%%mcp_tool --run thread\n"
        "def leave_question(ctx: Context) -> None:\n    'Has a thread ask.'\n"
        "    global asker\n"
        "    def ask():\n"
        "        try: outcome.append(ctx.elicit('Still there?'))\n"
        "        except Exception as error: outcome.append(str(error))\n"
        "    asker = threading.Thread(target=ask, daemon=True)\n"
        "    asker.start()\n"
        "    go.wait(60)"
    )
    link.send(messages.Call(id=1, tool="leave_question", arguments={}, can_elicit=True))
    link.receive_until(lambda message: isinstance(message, messages.Ask))
    kernel.ok("go.set()")
    assert not link.result().is_error
    ended = kernel.ok("asker.join(30); print(*outcome)").stdout
    assert "the call that asked it has ended" in ended
    kernel.ok("del leave_question")


def test_a_tool_that_replaces_stdout_or_the_sigint_handler_hurts_only_itself(kernel, link):
    assert text_of(link.call("replace_stdout")) == "replaced"
    assert kernel.ok("print('well')").stdout == "well\n"
    assert text_of(link.call("handler")) == "left"
    call = link.start("sleep", progress=True, seconds=60)
    wait_for_report(link)
    link.send(messages.Cancel(id=call))
    assert link.result().is_error
    assert kernel.ok("print('well')").stdout == "well\n"


def test_a_call_ends_with_the_code_that_it_began_with_and_the_next_uses_the_new(kernel, link):
    define = (
        "%%mcp_tool --run thread\ndef version(ctx: Context):\n    ctx.progress(1)\n"
        "    go.wait(60)\n    return {}"
    )
    kernel.ok("go = threading.Event()")
    kernel.ok(define.format("'old'"))
    link.start("version", progress=True)
    wait_for_report(link)
    kernel.ok(define.format("'new'"))
    kernel.ok("go.set()")
    assert text_of(link.result()) == "old"
    assert text_of(link.call("version")) == "new"
    kernel.ok("del version")


@pytest.fixture
def patient(kernel):
    """Code that does not stop at once is waited for."""
    module = "mcp_notebook.kernel.calls.stopping"
    kernel.set_constants(module, STOP_LIMIT=60)
    yield
    kernel.set_constants(module, STOP_LIMIT=0.2)


@pytest.mark.usefixtures("patient")
def test_a_cancel_does_not_send_a_signal_that_would_end_the_kernel(kernel, link):
    call = link.start("handler", progress=True, seconds=0.3)
    wait_for_report(link)
    link.send(messages.Cancel(id=call))
    assert text_of(link.result()) == "left"
    assert kernel.ok("print('well')").stdout == "well\n"


@pytest.mark.parametrize("tool", ["fork_in_generator", "fork_in_coroutine"])
def test_a_forked_child_becomes_no_second_kernel(kernel, link, tool):
    assert "parent" in text_of(link.call(tool))
    assert kernel.ok("print('well')").stdout == "well\n"
    assert "parent" in text_of(link.call(tool))


@pytest.mark.parametrize("how", ["exit", "quit", "loop"])
def test_a_tool_cannot_end_the_kernel(kernel, link, how):
    result = link.call("end", how=how)
    assert result.is_error
    assert "the kernel to end" in text_of(result)
    # ipykernel ends by a timer of a millisecond, which comes before this one.
    assert kernel.ok("await asyncio.sleep(0.01); print('well')").stdout == "well\n"


def test_more_calls_than_may_wait_are_answered_busy(kernel, link):
    with kernel.busy():
        for _ in range(70):
            link.start("add", a=1)
        refused = [link.result() for _ in range(6)]  # at once, while the cell still runs
    assert all("Try again" in text_of(result) for result in refused)
    assert [text_of(link.result()) for _ in range(64)] == ["2"] * 64


PLOTS = '''%%mcp_tool
import matplotlib.pyplot as plt

def shown() -> None:
    """plt.show()."""
    plt.plot([1, 2])
    plt.show()

def left_open() -> None:
    """A figure left open."""
    plt.plot([1, 2])

def returned():
    """A figure returned."""
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    return figure

def both():
    """Shown and returned."""
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    plt.show()
    return figure

async def later() -> None:
    """A figure left open by a coroutine."""
    await asyncio.sleep(0)
    plt.plot([1, 2])
'''


@pytest.fixture(scope="module")
def plots(kernel):
    kernel.ok(PLOTS)


@pytest.mark.usefixtures("plots")
@pytest.mark.parametrize("tool", ["shown", "left_open", "returned", "both", "later"])
def test_a_figure_arrives_once_as_a_picture_and_in_no_cell(kernel, link, tool):
    result = link.call(tool)
    pictures = [block for block in result.content if isinstance(block, Image)]
    assert len(pictures) == 1, json.dumps([str(block)[:200] for block in result.content])
    assert pictures[0].data.startswith(b"\x89PNG")
    assert not [
        block for block in result.content if isinstance(block, Text) and "Figure(" in block.text
    ]
    assert kernel.ok("print(plt.get_fignums())").text.strip() == "[]"


def test_a_figure_that_a_cell_leaves_open_is_not_taken_by_a_call(kernel, link):
    kernel.ok("import matplotlib.pyplot as plt\n%config InlineBackend.close_figures = False")
    call = link.start("async_sleep", seconds=60)
    kernel.ok("figure = plt.figure()")
    link.send(messages.Cancel(id=call))
    assert not [block for block in link.result().content if isinstance(block, Image)]
    assert kernel.ok("print(plt.get_fignums())").stdout == "[1]\n"
    kernel.ok("plt.close()\n%config InlineBackend.close_figures = True")


# -- what a call changes in the notebook -----------------------------------------------------------

CHANGE = """
def top() -> str:
    'First.'
    return 'first'

def change() -> None:
    'Rebind a function.'
    global top
    def top(n: int) -> str:
        'Second.'
        return f'second {n}'

async def change_later() -> None:
    'Rebind it while others may run.'
    change()

def drop() -> None:
    'Delete a function.'
    global top
    del top

import threading
began, released = threading.Event(), threading.Event()

def hold() -> None:
    'Run until it is released.'
    began.set()
    assert released.wait(60)

def release() -> None:
    'Release it.'
    assert began.wait(60)
    released.set()
"""


@pytest.mark.parametrize("options", ["", "--run thread"])
@pytest.mark.parametrize("tool", ["change", "change_later"])
def test_a_function_that_a_call_rebinds_is_the_next_calls(kernel, tool, options):
    kernel.ok(f"%%mcp_tool {options}{CHANGE}")
    with Link(record_of(kernel)) as link:
        link.start(tool)
        *before, _ = link.receive_until(lambda message: isinstance(message, Result))
        assert [each.description for each in before[-1].tools if each.name == "top"] == ["Second."]
        assert text_of(link.call("top", n=2)) == "second 2"
        link.call("drop")
        assert "`top` was deleted." in text_of(link.call("top"))
    assert kernel.ok("1").text.strip() == "1"


def test_a_cell_that_runs_has_its_functions_followed_when_it_ends(kernel):
    kernel.ok(f"%%mcp_tool --run thread{CHANGE}")
    with Link(record_of(kernel)) as link, kernel.busy():
        link.call("drop")
        assert "top" in tools_of(kernel)
    assert "top" not in tools_of(kernel)


def test_variables_that_calls_rebind_are_followed_after_the_last_call(kernel):
    kernel.ok(f"%%mcp_tool --run thread{CHANGE}")
    with Link(record_of(kernel)) as link:
        link.start("hold")
        link.call("drop")
        assert "top" in tools_of(kernel)
        link.start("release")
        for _ in range(2):  # in any order
            link.result()
        link.call("add", a=1)
    assert "top" not in tools_of(kernel)


def test_an_answered_call_leaves_nothing_behind_for_the_garbage_collector(kernel, link):
    link.call("add", a=1)  # what the first call makes for all others
    kernel.ok("import gc; gc.collect(); gc.disable()")
    for _ in range(50):
        assert text_of(link.call("add", a=1)) == "2"
    kernel.ok("gc.set_debug(gc.DEBUG_SAVEALL); gc.collect(); gc.set_debug(0); gc.enable()")
    # A call that an earlier test stopped may end just now, with its own capture.
    found = kernel.ok(
        "kinds = [type(item).__name__ for item in gc.garbage]\n"
        "tools = [item.tool for item in gc.garbage if type(item).__name__ == 'ActiveCall']\n"
        "print('add' in tools, kinds.count('Capture') > len(tools)); gc.garbage.clear()"
    ).stdout
    assert found == "False False\n"
