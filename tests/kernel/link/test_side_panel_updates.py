"""What side panels are told of calls, also of those that end late or are interrupted."""

import asyncio
import itertools
import os
import sys
import threading

import pytest
from live import Link, record_of

from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.link.side_panel_updates import Watchers
from mcp_notebook.kernel.safe.interrupter import AsyncInterrupter
from mcp_notebook.wire import messages

LIMIT = 30


def test_a_stopped_call_is_shown_until_its_code_has_ended(kernel, home):
    pipe = home / "pipe"
    os.mkfifo(pipe)
    kernel.ok(
        "from mcp_notebook import mcp_tool\n"
        "@mcp_tool(run='thread')\n"
        f"def read(): open({str(pipe)!r}).close()"
    )
    with Link(record_of(kernel)) as link, Link(record_of(kernel)) as page:
        page.send(messages.WatchNotebook())
        page.receive()
        call = link.start("read")
        page.receive_until(lambda state: state.open_calls and state.open_calls[0].began)
        link.send(messages.Cancel(id=call))
        assert link.result().is_error
        state = page.receive_until(lambda state: state.ended_calls)[-1]
        assert state.open_calls[0].is_stopping
        pipe.write_text("")  # its code waits for this
        page.receive_until(lambda state: state.open_calls == [])


class View:
    """A notebook whose state is a number."""

    def __init__(self):
        self.log = CallLog()
        self.number = 0

    def read(self, _progress):
        return messages.NotebookState(number_of_calls=self.number)

    def set_watched(self, _frontends):
        pass


@pytest.mark.anyio
async def test_an_interrupt_of_a_call_that_reports_progress_never_ends_the_updates():
    view = View()
    watchers = Watchers(view, dict, interval=0)
    sent = asyncio.Queue()
    watchers.add(lambda message, _: sent.put_nowait(message), lambda: False)
    for line in itertools.count(1):
        is_reached = await asyncio.to_thread(interrupt_at_line, watchers.note_change, line)
        view.number = line
        watchers.note_change()
        while (await asyncio.wait_for(sent.get(), LIMIT)).number_of_calls != line:
            pass
        if not is_reached:
            break
    assert line > 3


def interrupt_at_line(method, number):
    """Run a method, and interrupt it at one of its lines; return whether it has so many."""
    interrupter = AsyncInterrupter(KeyboardInterrupt)
    lines = itertools.count(1)
    is_reached = False

    def trace(frame, event, _):
        nonlocal is_reached
        if frame.f_code is method.__code__ and event == "line" and next(lines) == number:
            is_reached = True
            thread = threading.Thread(target=interrupter.interrupt)
            thread.start()
            thread.join()
        return trace

    sys.settrace(trace)
    try:
        interrupter.run(method)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
        interrupter.remove()
    return is_reached
