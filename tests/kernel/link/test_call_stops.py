"""A call is stopped by its number, whoever made it, and whatever holds the main thread."""

import pytest
from live import Link, kernel_with, record_of, text_of, until

from mcp_notebook.wire import messages

TOOLS = '''%%mcp_tool
import asyncio, threading, time

def spin() -> None:
    """Hold the main thread."""
    while True:
        time.sleep(0.01)

def quick() -> str:
    """Return."""
    return "there"

async def forever() -> None:
    """Run on the loop."""
    await asyncio.Event().wait()
'''
IN_THREAD = '''%%mcp_tool --run thread
go = threading.Event()

def stubborn() -> str:
    """Do not react."""
    go.wait()
    return "late"
'''
REASON = "The user stopped it."


kernel = kernel_with(TOOLS, IN_THREAD)


def wait_for_call(kernel, tool, doing):
    """Return what bridges are told of a call of this tool, once it does this."""

    def find():
        with Link(record_of(kernel)) as link:
            for call in link.welcome.calls:
                if call.tool == tool and call.doing.startswith(doing):
                    return call
        return None

    return until(find)


def stop(kernel, number):
    with Link(record_of(kernel)) as link:
        link.send(messages.StopCall(id=5, number=number, reason=REASON))
        answer = link.receive()
    assert answer.id == 5
    return answer


@pytest.mark.parametrize("tool", ["spin", "forever"])
def test_a_call_of_another_bridge_is_stopped_while_it_holds_the_kernel(kernel, link, tool):
    link.start(tool)
    call = wait_for_call(kernel, tool, "running")
    assert call.client == "unknown client"
    answer = stop(kernel, call.number)
    assert (answer.tool, answer.state, answer.is_stopping) == (tool, "cancelled", False)
    result = link.result()
    assert result.is_error
    assert REASON in text_of(result)


def test_a_call_that_waits_for_a_cell_is_stopped_at_once(kernel, link):
    with kernel.busy():
        link.start("quick")
        call = wait_for_call(kernel, "quick", "waiting: a cell has been running")
        assert stop(kernel, call.number).state == "cancelled"
        assert REASON in text_of(link.result())


def test_the_notebooks_own_call_is_stopped_within_its_cell(kernel):
    request = kernel.start("%mcp call spin")
    call = wait_for_call(kernel, "spin", "running")
    assert call.client == "this notebook"
    assert stop(kernel, call.number).state == "cancelled"
    assert REASON in kernel.finish(request).stdout


def test_code_that_does_not_react_is_said_to_be_stopping(kernel, link):
    link.start("stubborn")
    number = wait_for_call(kernel, "stubborn", "running").number
    for _ in range(2):  # the second time, it is no longer waited for
        answer = stop(kernel, number)
        assert (answer.state, answer.is_stopping) == ("cancelled", True)
    link.result()
    assert wait_for_call(kernel, "stubborn", "still stopping").number == number
    kernel.ok("go.set()")


def test_a_call_that_does_not_run_is_not_counted_as_a_call(kernel, link):
    assert stop(kernel, 10_000).tool is None
    assert text_of(link.call("quick")) == "there"


def test_who_leaves_before_the_answer_harms_nothing(kernel, link):
    link.start("spin")
    number = wait_for_call(kernel, "spin", "running").number
    with Link(record_of(kernel)) as other:
        other.send(messages.StopCall(id=1, number=number, reason=REASON))
    assert REASON in text_of(link.result())
    assert text_of(link.call("quick")) == "there"
