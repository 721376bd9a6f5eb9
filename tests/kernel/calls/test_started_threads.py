"""Threads that a tool starts, in a real kernel."""

import ipykernel
import pytest
from live import kernel_with, text_of

TOOLS = """
import threading
from concurrent.futures import ThreadPoolExecutor
from mcp_notebook import mcp_tool

go, ended = threading.Event(), threading.Event()
threads = []
pool = ThreadPoolExecutor(1)

def speak(word):
    print(word)

def speak_late():
    print("early")
    began.set()
    go.wait(30)
    print("late")
    ended.set()

class Speaker(threading.Thread):
    def run(self):
        print("a thread of a class")

@mcp_tool
def start_threads() -> str:
    'Start.'
    for thread in (
        threading.Thread(target=speak, args=("a thread",)),
        Speaker(daemon=True),
        threading.Timer(0, speak, ("a timer",)),
    ):
        thread.start()
        thread.join()
        assert "run" not in vars(thread)
    return "done"

@mcp_tool
def leave_a_thread() -> str:
    'Leave.'
    global began
    began = threading.Event()
    threading.Thread(target=speak_late).start()
    began.wait(30)
    return "done"

def display_late():
    go.wait(30)
    display("late")
    get_ipython().display_pub.clear_output()
    ended.set()

@mcp_tool
def leave_a_displaying_thread() -> str:
    'Leave.'
    threading.Thread(target=display_late).start()
    return "done"

def trace_run(thread):
    run = thread.run
    def traced_run():
        print("traced")
        run()
    thread.run = traced_run

@mcp_tool
def start_a_traced_thread() -> str:
    'Start.'
    thread = threading.Thread(target=speak, args=("a thread",))
    trace_run(thread)
    traced_run = thread.run
    thread.start()
    thread.join()
    return str(thread.run is traced_run)

def fail():
    print("before it fails")
    raise LookupError("on purpose")

class Odd(threading.Thread):
    def run(self):
        raise LookupError("in a class")

@mcp_tool
def start_failing_threads() -> str:
    'Start.'
    for thread in (threading.Thread(target=fail), Odd(), threading.Timer(0, fail)):
        thread.start()
        thread.join()
    return "done"

@mcp_tool
def start_exiting_thread() -> str:
    'Start.'
    thread = threading.Thread(target=lambda: exit_quietly())
    thread.start()
    thread.join()
    return "done"

def exit_quietly():
    raise SystemExit(1)

@mcp_tool
def use_pool() -> str:
    'Use the worker of a pool, which it starts.'
    return pool.submit(str, 1).result()
"""


kernel = kernel_with(TOOLS)


def test_what_its_threads_print_is_in_the_result(kernel, link):
    text = text_of(link.call("start_threads"))
    for words in ("a thread\n", "a thread of a class", "a timer"):
        assert words in text


def test_what_others_have_put_in_the_place_of_run_is_run(kernel, link):
    assert text_of(link.call("start_a_traced_thread")) == "traced\na thread\nTrue"


def test_the_traceback_of_a_thread_that_fails_is_in_the_result(link):
    text = text_of(link.call("start_failing_threads"))
    assert text.count("Exception in thread") == 3
    assert text.count("LookupError: on purpose") == 2
    assert "LookupError: in a class" in text
    assert "environment.py" not in text
    assert "done" in text


def test_what_a_thread_prints_after_the_call_is_not_in_the_cell(kernel, link):
    assert "early" in text_of(link.call("leave_a_thread"))
    output = kernel.ok("go.set(); ended.wait(30); print('mine')")
    assert output.stdout == "mine\n"


def test_what_a_thread_displays_after_the_call_is_in_no_cell(kernel, link):
    kernel.ok("go.clear(); ended.clear()")
    assert text_of(link.call("leave_a_displaying_thread")) == "done"
    request = kernel.start("go.set(); assert ended.wait(30); display('mine')")
    # It would come first, and for any of the cells before.
    assert kernel.wait_for("display_data")["data"] == {"text/plain": "'mine'"}
    kernel.finish(request)


def test_what_a_call_runs_in_a_pool_prints_into_the_result(kernel, link):
    kernel.ok(
        "@mcp_tool\ndef ask_pools() -> None:\n    'Ask.'\n"
        "    pool.submit(speak, 'of a pool').result()\n"
        "    with ThreadPoolExecutor() as own:\n"
        "        list(own.map(display, ['of its own']))"
    )
    assert text_of(link.call("ask_pools")) == "of a pool\n'of its own'"


@pytest.mark.skipif(
    ipykernel.version_info < (7,), reason="ipykernel 6 gives a thread's prints to its first cell"
)
def test_the_worker_of_a_pool_serves_cells_as_before(kernel, link):
    link.call("use_pool")
    output = kernel.ok("pool.submit(speak, 'of the cell').result()")
    assert output.stdout == "of the cell\n"
