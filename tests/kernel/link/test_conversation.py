"""One bridge: its calls, what it is told of them, and what it reads."""

import re
import threading
import time
from contextlib import contextmanager

import pytest
from live import SOON, Link, text_of
from msgspec import structs

from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.tools.context import LogMessage
from mcp_notebook.wire import frames, messages

LIMIT = 30


def test_a_message_that_bridges_do_not_send_ends_the_conversation(listening):
    _, record, _ = listening
    with Link(record) as link:
        link.send(messages.Goodbye(reason="no"))
        assert link.receive() is None


@pytest.mark.parametrize(
    ("message", "is_answered"),
    [
        (messages.Call(id=7, tool="unsubmitted", arguments={}), True),
        (messages.Cancel(id=1, reason="raise"), False),
        (messages.ListResources(id=7, limit=1), True),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_a_message_that_cannot_be_handled_is_answered_and_ends_nothing(
    listening, message, is_answered
):
    _, record, echo = listening
    echo.store.list_links = None
    with Link(record) as link:
        link.start("never")
        link.send(message)
        if is_answered:
            answer = link.receive()
            if isinstance(message, messages.Call):
                assert answer.is_error
                assert "RuntimeError: can't start new thread. Try again." in text_of(answer)
            else:
                assert (answer.id, answer.resources) == (7, [])
        assert text_of(link.call("echo")) == "echo {}"


def test_what_a_call_has_declared_is_told_before_its_result(listening, echo):
    endpoint, record, _ = listening
    with Link(record) as link:
        link.start("never")
        assert text_of(link.call("echo")) == "echo {}"  # so that the other one has begun, too
        echo.tools = [*echo.tools, structs.replace(echo.tools[0], name="new")]
        endpoint.announce_tools()
        echo.reply(Result([Text("declared")]))
        tools, result = link.receive(), link.receive()
        assert [tool.name for tool in tools.tools] == ["echo", "new"]
        assert text_of(result) == "declared"


def test_in_place_of_a_result_that_is_too_large_comes_what_can_be_done(listening, echo):
    _, record, _ = listening
    with Link(record) as link:
        link.start("never")
        assert text_of(link.call("echo")) == "echo {}"  # so that the other one has begun, too
        echo.reply(Result([Text("x" * frames.MAX_HEADER)]))
        result = link.receive()
        assert result.is_error
        assert re.search(
            r"too large to be sent: .* 67,109,\d\d\d bytes, and the limit is 67,108,864\b.* "
            r"as a file .* `max_result_chars`",
            text_of(result),
        )
        assert text_of(link.call("echo")) == "echo {}"


@contextmanager
def busy(endpoint):
    """Keep the endpoint's thread busy within the block."""
    has_begun, may_end = threading.Event(), threading.Event()
    endpoint._loop.call_soon_threadsafe(lambda: (has_begun.set(), may_end.wait()))
    assert has_begun.wait(LIMIT)
    try:
        yield
    finally:
        may_end.set()


@pytest.mark.parametrize("asks_for", [{}, {"log_level": "info"}, {"progress": True}], ids=str)
def test_the_thread_that_has_a_result_sends_it_itself(listening, echo, asks_for):
    """Also if its client would have taken log messages or progress, as most clients would."""
    endpoint, record, _ = listening
    with Link(record) as link:
        link.send(messages.Call(id=99, tool="never", arguments={}, **asks_for))
        link.call("echo")  # so that the other one has begun, too
        with busy(endpoint):
            link.socket.settimeout(10)
            echo.reply(Result([Text("by itself")]))
            assert text_of(link.receive()) == "by itself"
        assert text_of(link.call("echo")) == "echo {}"


def test_a_result_waits_for_what_its_call_has_logged(listening, echo):
    endpoint, record, _ = listening
    with Link(record) as link:
        link.send(messages.Call(id=99, tool="never", arguments={}, log_level="info"))
        link.call("echo")
        with busy(endpoint):
            echo.send_log(LogMessage("info", "logged"))
            echo.reply(Result([Text("returned")]))
        assert link.receive().text == "logged"
        assert text_of(link.receive()) == "returned"


def test_a_cancellation_comes_with_its_reason(listening, echo):
    _, record, _ = listening
    with Link(record) as link:
        link.send(messages.Cancel(id=link.start("never"), reason="Not wanted."))
        assert echo.cancelled.wait(LIMIT)
        assert echo.cancel_reason == "Not wanted."


def test_a_result_that_cannot_be_sent_becomes_an_error(listening):
    _, record, _ = listening
    with Link(record) as link:
        result = link.call("broken")
        assert result.is_error or result.structured is not None


def test_a_large_picture_arrives_whole(listening):
    _, record, _ = listening
    with Link(record) as link:
        (picture,) = link.call("picture").content
        assert len(picture.data) == 3_000_000


def test_while_large_results_are_sent_calls_are_cancelled_and_no_frame_is_mixed(listening):
    _, record, echo = listening
    with Link(record) as link:
        never = link.start("never")
        for _ in range(5):  # far more than the socket takes before anything is read
            link.start("picture")
            link.start("echo")
        link.send(messages.Cancel(id=never))
        assert echo.cancelled.wait(SOON)
        results = [link.result() for _ in range(10)]
    sizes = [len(block.data) for result in results[::2] for block in result.content]
    assert sizes == [3_000_000] * 5
    assert [text_of(result) for result in results[1::2]] == ["echo {}"] * 5


def test_what_a_call_says_does_not_pile_up_for_a_bridge_that_does_not_read(listening):
    endpoint, record, echo = listening
    with Link(record) as link, Link(record) as other:
        link.send(messages.Call(id=99, tool="never", arguments={}, log_level="info"))
        link.call("echo")
        for _ in range(10):  # far more than may wait
            link.start("picture")
        link.send(messages.Cancel(id=99))
        assert echo.cancelled.wait(SOON)  # so that the pictures wait
        with busy(endpoint):
            for _ in range(50):
                echo.send_log(LogMessage("info", "Nobody reads this."))
        for _ in range(3):  # rounds of the endpoint's loop: one of them would have sent the logs
            other.call("echo")
        assert all(isinstance(link.receive(), Result) for _ in range(10))
        other.call("echo")  # so that the endpoint knows what was read
        echo.send_log(LogMessage("info", "It reads again."))
        assert link.receive().text == "It reads again."
        echo.reply(Result())
        assert link.receive().text.startswith("50 log messages left out")


def test_a_bridge_that_goes_without_a_word_leaves_its_calls_running(listening):
    _, record, echo = listening
    with Link(record) as link:
        link.start("never")
        link.call("echo")
    with Link(record) as another:
        assert text_of(another.call("echo", text="still here")) == "echo {'text': 'still here'}"
    assert not echo.cancelled.is_set()


def _keep(store, content, name="a"):
    original = Original(name, "All of it", (FileFormat(".csv", "text/csv", content, 3),), cost=1)
    (link,) = store.keep(original)
    return link


def test_resources_are_listed_in_parts_and_read(listening):
    _, record, echo = listening
    one = _keep(echo.store, lambda: "ä,\ud800")
    two = _keep(echo.store, lambda: b"\x00\xff")
    with Link(record) as link:
        link.send(messages.ListResources(id=1, limit=1))
        (listed,) = link.receive().resources
        assert (listed.uri, listed.name, listed.title) == (one.uri, "a.csv", "All of it")
        assert (listed.mime_type, listed.size) == ("text/csv", 3)
        link.send(messages.ListResources(id=2, after=listed.number, limit=10))
        assert [info.uri for info in link.receive().resources] == [two.uri]
        for uri, size in ((one.uri, 6), (two.uri, 2)):
            link.send(messages.ReadResource(id=3, uri=uri))
            contents = link.receive()
            assert (contents.id, contents.uri, contents.error) == (3, uri, None)
            assert contents.is_text == (size == 6)
            assert contents.mime_type == "text/csv"


def test_a_content_that_takes_long_holds_up_nothing_else(listening):
    _, record, echo = listening
    go_on = threading.Event()
    slow = _keep(echo.store, lambda: str(go_on.wait(30)))
    quick = _keep(echo.store, lambda: "quick")
    with Link(record) as link:
        link.send(messages.ReadResource(id=1, uri=slow.uri))
        link.send(messages.ReadResource(id=2, uri=quick.uri))
        assert link.receive().id == 2
        assert text_of(link.call("echo", a=1)) == "echo {'a': 1}"
        go_on.set()
        assert link.receive().id == 1


@pytest.mark.parametrize("how", ["ended", "disconnected"])
def test_a_read_that_is_no_longer_wanted_is_stopped(listening, how):
    _, record, echo = listening
    began, stopped = threading.Event(), threading.Event()

    def content():
        try:
            while True:
                began.set()
                time.sleep(0.01)
        finally:
            stopped.set()

    with Link(record) as link:
        link.send(messages.ReadResource(id=1, uri=_keep(echo.store, content).uri))
        assert began.wait(30)
        if how == "ended":
            link.send(messages.EndRead(id=1))
            assert stopped.wait(30)
            link.send(messages.EndRead(id=1))  # it is unknown by now
            link.send(messages.ReadResource(id=2, uri=_keep(echo.store, lambda: "next").uri))
            assert link.receive().id == 2
    assert stopped.wait(30)


def test_an_unknown_resource_is_told_from_one_that_cannot_be_made(listening):
    _, record, echo = listening
    broken = _keep(echo.store, lambda: 1 / 0)
    with Link(record) as link:
        link.send(messages.ReadResource(id=1, uri=f"{broken.uri}x"))
        assert link.receive().unknown
        link.send(messages.ReadResource(id=2, uri=broken.uri))
        answer = link.receive()
        assert not answer.unknown
        assert "ZeroDivisionError" in answer.error
