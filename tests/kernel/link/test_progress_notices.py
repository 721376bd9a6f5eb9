"""What a client is told while its call waits or runs: seldom enough, and often enough."""

import time

from live import Link

from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.link.call_notices import HEARTBEAT, PROGRESS_INTERVAL, ProgressNotices
from mcp_notebook.kernel.tools.context import Update


def test_progress_is_sent_seldom_and_the_newest_is_what_is_sent(listening):
    _, record, echo = listening
    with Link(record) as link:
        link.start("never", progress=True)
        link.call("echo")
        began = time.monotonic()
        for done in range(1001):
            echo.report(Update(done, 1000))
        echo.report(Update(message="a message alone"))
        told = link.receive_until(lambda notice: notice.message == "a message alone")
        assert (told[-1].progress, told[-1].total) == (1000, 1000)
        assert len(told) <= 2 + (time.monotonic() - began) / PROGRESS_INTERVAL


def test_a_call_that_says_nothing_is_told_to_be_alive(clock):
    call, told = Call("never"), []
    call.move(CallState.RUNNING)
    notices = ProgressNotices(1, clock, told.append)
    notices.start(call, lambda call: f"running {call.tool}")
    notices.report(Update(3, 10, "three of ten"))
    clock.advance(HEARTBEAT - 1)
    assert [notice.message for notice in told] == ["three of ten"]
    clock.advance(1)
    heartbeat = told[1]
    assert (heartbeat.message, heartbeat.progress) == ("running never", 3)


def test_who_does_not_ask_is_told_no_progress(listening):
    _, record, echo = listening
    with Link(record) as link:
        link.start("never")
        link.call("echo")
        assert echo.report is None
        assert echo.send_log is None
