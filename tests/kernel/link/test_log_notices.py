"""How many log messages of a call its client gets, and what it is told of the others."""

import itertools
import threading

import pytest
from live import Link

from mcp_notebook.content import Result
from mcp_notebook.kernel.link import call_notices
from mcp_notebook.kernel.link.call_notices import MAX_LOGS, MAX_TEXT
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


def flood(echo, number, level="info"):
    for i in range(number):
        echo.send_log(LogMessage(level, f"{level} {i}"))


def receive_logs(link, echo):
    echo.reply(Result())
    *logs, _result = link.receive_until(lambda message: isinstance(message, Result))
    return [(log.level, log.text) for log in logs]


def test_a_few_messages_are_all_sent(logging_call):
    link, echo = logging_call
    flood(echo, MAX_LOGS)
    assert receive_logs(link, echo) == [("info", f"info {i}") for i in range(MAX_LOGS)]


def test_of_a_flood_the_first_are_sent_and_the_number_of_the_others(logging_call, monkeypatch):
    monkeypatch.setattr(call_notices, "LOG_PERIOD", 60)
    link, echo = logging_call
    flood(echo, 50_000)
    *logs, note = receive_logs(link, echo)
    assert logs == [("info", f"info {i}") for i in range(MAX_LOGS)]
    assert note[0] == "warning"
    assert note[1].startswith("49,900 log messages left out here: at most 100 a second")


def test_a_flood_does_not_hide_an_error(logging_call, monkeypatch):
    monkeypatch.setattr(call_notices, "LOG_PERIOD", 60)
    link, echo = logging_call
    flood(echo, 5_000)
    echo.send_log(LogMessage("error", "The disk is full."))
    assert ("error", "The disk is full.") in receive_logs(link, echo)


def test_while_a_call_floods_its_client_gets_some_and_all_are_counted(logging_call, monkeypatch):
    monkeypatch.setattr(call_notices, "LOG_PERIOD", 0.05)
    # Each takes this process long to read meanwhile.
    monkeypatch.setattr(call_notices, "MAX_LOGS", 5)
    link, echo = logging_call
    stopping = threading.Event()
    numbers = itertools.count()

    def log():
        while not stopping.is_set():
            echo.send_log(LogMessage("info", str(next(numbers))))

    thread = threading.Thread(target=log)
    thread.start()
    received = []
    for _ in range(3):  # of the notes: the rate need not fall for one
        received += link.receive_until(lambda message: "left out" in message.text)
    stopping.set()
    thread.join()
    echo.reply(Result())
    received += link.receive_until(lambda message: isinstance(message, Result))[:-1]
    notes = [log for log in received if "left out" in log.text]
    left_out = sum(int(note.text.split()[0].replace(",", "")) for note in notes)
    assert len(received) - len(notes) + left_out == next(numbers)


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
        flood(echo, 1_000)
        assert receive_logs(link, echo) == []
        link.send(messages.Call(id=100, tool="never", arguments={}, log_level="error"))
        link.call("echo")
        flood(echo, 1_000, "critical")
        assert receive_logs(link, echo)[-1][0] == "error"
