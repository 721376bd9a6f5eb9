"""How many log messages of a call its client gets, and what it is told of the others."""

import itertools
import threading

import pytest
from live import Link

from mcp_notebook.content import Result
from mcp_notebook.kernel.link.call_notices import LOG_PERIOD, MAX_LOGS, MAX_TEXT, LogNotices
from mcp_notebook.kernel.tools.context import LogMessage
from mcp_notebook.wire import messages


@pytest.fixture
def logging_call(listening):
    """Yield a link, what logs in a call that a client follows from "info", and its end."""
    _, record, echo = listening
    with Link(record) as link:
        link.send(messages.Call(id=99, tool="never", arguments={}, log_level="info"))
        link.call("echo")
        yield link, echo


@pytest.fixture
def notices(clock):
    """Return what logs in a call whose client wants all from "info", and what is sent of it."""
    sent = []
    return LogNotices(99, "info", clock, lambda logs: sent.extend(logs) or True), sent


def flood(send_log, number, level="info"):
    for i in range(number):
        send_log(LogMessage(level, f"{level} {i}"))


def receive_logs(link, echo):
    echo.reply(Result())
    *logs, _result = link.receive_until(lambda message: isinstance(message, Result))
    return [(log.level, log.text) for log in logs]


def test_a_few_messages_are_all_sent(logging_call):
    link, echo = logging_call
    flood(echo.send_log, MAX_LOGS)
    assert receive_logs(link, echo) == [("info", f"info {i}") for i in range(MAX_LOGS)]


def test_of_a_flood_the_first_are_sent_and_the_number_of_the_others(notices):
    call_logs, sent = notices
    flood(call_logs.take, 50_000)
    call_logs.close()
    *logs, note = sent
    assert [log.text for log in logs] == [f"info {i}" for i in range(MAX_LOGS)]
    assert note.level == "warning"
    assert note.text.startswith("49,900 log messages left out here: at most 100 a second")


def test_a_flood_does_not_hide_an_error(notices):
    call_logs, sent = notices
    flood(call_logs.take, 5_000)
    call_logs.take(LogMessage("error", "The disk is full."))
    call_logs.close()
    assert ("error", "The disk is full.") in [(log.level, log.text) for log in sent]


def test_while_a_call_floods_its_client_gets_some_and_all_are_counted(clock, notices):
    call_logs, sent = notices
    stopping = threading.Event()
    numbers = itertools.count()

    def log():
        while not stopping.is_set():
            call_logs.take(LogMessage("info", str(next(numbers))))

    thread = threading.Thread(target=log)
    thread.start()
    while sum("left out" in log.text for log in sent) < 3:
        clock.advance(LOG_PERIOD)
    stopping.set()
    thread.join()
    call_logs.close()
    notes = [log for log in sent if "left out" in log.text]
    left_out = sum(int(note.text.split()[0].replace(",", "")) for note in notes)
    assert len(sent) - len(notes) + left_out == next(numbers)


def test_a_long_message_is_cut_and_says_so(logging_call):
    link, echo = logging_call
    echo.send_log(LogMessage("info", "x" * (MAX_TEXT + 1_234)))
    ((_, text),) = receive_logs(link, echo)
    assert text == "x" * MAX_TEXT + "[... 1,234 characters left out]"


def test_a_client_that_wants_errors_only_is_told_at_that_level(listening):
    _, record, echo = listening
    with Link(record) as link:
        link.send(messages.Call(id=99, tool="never", arguments={}, log_level="error"))
        link.call("echo")
        flood(echo.send_log, 1_000)
        assert receive_logs(link, echo) == []
        link.send(messages.Call(id=100, tool="never", arguments={}, log_level="error"))
        link.call("echo")
        flood(echo.send_log, 1_000, "critical")
        assert receive_logs(link, echo)[-1][0] == "error"
