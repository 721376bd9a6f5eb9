"""The kernel's end of the link, without a kernel: who may talk to it, and what it answers."""

import os
import socket
import threading
import time

import pytest
from live import SOON, Link, text_of

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.discovery import Record
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.link import conversation as conversation_module
from mcp_notebook.kernel.link import progress_notices as notices_module
from mcp_notebook.kernel.link.endpoint import Endpoint
from mcp_notebook.kernel.link.resource_reader import ResourceReader
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.tools.context import LogMessage, Update
from mcp_notebook.wire import messages

TOOL = messages.ToolInfo(name="echo", input_schema={"type": "object"})


class Echo:
    """Answers each call with its arguments, at once."""

    def __init__(self):
        self.cancelled = threading.Event()
        self.tools = [TOOL]
        self.report = self.send_log = None
        self.store = ResourceStore("test", 10**6)

    calls = ()

    def submit(self, tool, arguments, reply, client):
        if tool == "never":
            self.report, self.send_log = client.report, client.send_log
        if tool == "broken":
            reply(Result([Text("x")], structured={"x": object()}))
        elif tool == "picture":
            reply(Result([Image(os.urandom(3_000_000))]))
        elif tool != "never":
            reply(Result([Text(f"{tool} {arguments}")]))
        call = Call(tool)
        call.move(CallState.RUNNING)
        return call

    def cancel(self, _call, _reason):
        self.cancelled.set()

    def describe(self, call):
        return f"echoing {call.tool}"


@pytest.fixture(params=[False, True], ids=["unix", "tcp"])
def listening(request, home):
    echo = Echo()
    endpoint = Endpoint(
        echo,
        lambda: list(echo.tools),
        ResourceReader(echo.store),
        path=home / "test.sock",
        tcp=request.param,
    )
    address = endpoint.start()
    record = Record(
        id="test",
        pid=os.getpid(),
        started=0,
        host="here",
        version="0",
        protocol=messages.PROTOCOL_VERSION,
        name="test",
        socket=address.socket,
        port=address.port,
        token=address.token,
    )
    yield endpoint, record, echo
    endpoint.stop("The test is over.")
    assert not [thread for thread in threading.enumerate() if "mcp-notebook" in thread.name]


def test_a_bridge_is_welcomed_with_the_tools_and_answered(listening):
    _, record, _ = listening
    with Link(record) as link:
        assert link.welcome.tools == [TOOL]
        assert text_of(link.call("echo", a=1)) == "echo {'a': 1}"


def test_several_bridges_talk_at_once(listening):
    _, record, _ = listening
    with Link(record) as one, Link(record) as two:
        one.start("echo", a=1)
        two.start("echo", a=2)
        assert text_of(two.result()) == "echo {'a': 2}"
        assert text_of(one.result()) == "echo {'a': 1}"


def test_all_bridges_are_told_of_a_change(listening):
    endpoint, record, echo = listening
    with Link(record) as one, Link(record) as two:
        echo.tools = []
        endpoint.announce_tools()
        assert one.receive() == two.receive() == messages.Tools(tools=[])


def test_a_bridge_that_knows_the_tools_already_is_not_told_again(listening):
    endpoint, record, echo = listening
    with Link(record) as early:
        echo.tools = [TOOL, messages.ToolInfo(name="new", input_schema={"type": "object"})]
        endpoint.announce_tools()
        with Link(record) as late:
            assert early.receive() == messages.Tools(tools=echo.tools)
            assert late.welcome.tools == echo.tools
            endpoint.stop("The test is over.")
            assert late.receive().type == "goodbye"


def test_a_bridge_of_another_version_is_told_which_side_to_upgrade(listening):
    _, record, _ = listening
    hello = messages.Hello(version="9", protocol=messages.PROTOCOL_VERSION + 1, token=record.token)
    with Link(record, hello) as link:
        assert isinstance(link.welcome, messages.Refused)
        assert "kernel's side" in link.welcome.message
        assert link.receive() is None


def test_over_tcp_the_token_decides(listening):
    _, record, _ = listening
    if record.token is None:
        pytest.skip("a Unix socket's file is its protection")
    for wrong in (None, "wrong", "wröng"):
        with Link(record, messages.Hello(version="0", token=wrong)) as link:
            assert isinstance(link.welcome, messages.Refused)
            assert link.receive() is None


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{}", b"\x00\x00\x00\x01["],
)
def test_a_stranger_is_disconnected_and_the_others_go_on(listening, sent):
    _, record, _ = listening
    with Link(record) as link:
        family = socket.AF_UNIX if record.socket else socket.AF_INET
        with socket.socket(family) as stranger:
            stranger.settimeout(10)
            stranger.connect(record.socket or ("127.0.0.1", record.port))
            stranger.sendall(sent)
            assert stranger.recv(100) == b""
        assert text_of(link.call("echo")) == "echo {}"


def test_a_message_that_bridges_do_not_send_ends_the_conversation(listening):
    _, record, _ = listening
    with Link(record) as link:
        link.send(messages.Goodbye(reason="no"))
        assert link.receive() is None


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


def test_what_a_call_says_does_not_pile_up_for_a_bridge_that_does_not_read(listening, monkeypatch):
    monkeypatch.setattr(conversation_module, "MAX_BACKLOG", 100_000)
    _, record, echo = listening

    def log(text):
        echo.send_log(LogMessage("info", text))

    with Link(record) as link:
        link.send(messages.Call(id=99, tool="never", arguments={}, log_level="info"))
        link.call("echo")
        for _ in range(2_000):
            log("x" * 20_000)
        link.start("echo")
        logs = 0
        while isinstance(link.receive(), messages.Log):
            logs += 1
        assert 0 < logs < 2_000  # then came the result
        log("It reads again.")
        assert link.receive().text == "It reads again."


def test_a_bridge_that_goes_without_a_word_leaves_its_calls_running(listening):
    _, record, echo = listening
    with Link(record) as link:
        link.start("never")
        link.call("echo")
    with Link(record) as another:
        assert text_of(another.call("echo", text="still here")) == "echo {'text': 'still here'}"
    assert not echo.cancelled.is_set()


def test_bridges_are_told_why_the_kernel_leaves(listening):
    endpoint, record, _ = listening
    with Link(record) as link:
        endpoint.stop("The notebook unloaded mcp_notebook.")
        assert link.receive() == messages.Goodbye(reason="The notebook unloaded mcp_notebook.")
        assert link.receive() is None


def test_progress_is_sent_seldom_and_the_newest_is_what_is_sent(listening, monkeypatch):
    monkeypatch.setattr(notices_module, "PROGRESS_INTERVAL", 0.05)
    _, record, echo = listening
    with Link(record) as link:
        link.start("never", progress=True)
        link.call("echo")
        began = time.monotonic()
        for done in range(1001):
            echo.report(Update(done, 1000))
        echo.report(Update(message="a message alone"))
        told = [link.receive()]
        while told[-1].message != "a message alone":
            told.append(link.receive())
        assert (told[-1].progress, told[-1].total) == (1000, 1000)
        assert len(told) <= 2 + (time.monotonic() - began) / 0.05


def test_a_call_that_says_nothing_is_told_to_be_alive(listening, monkeypatch):
    monkeypatch.setattr(notices_module, "NOTICE_AFTER", 0.01)
    monkeypatch.setattr(notices_module, "NOTICE_EVERY", 0.02)
    monkeypatch.setattr(notices_module, "HEARTBEAT", 0.1)
    _, record, echo = listening
    with Link(record) as link:
        link.start("never", progress=True)
        link.call("echo")
        echo.report(Update(3, 10, "three of ten"))
        while link.receive().message != "three of ten":
            pass  # it may have been told before
        heartbeat = link.receive()
        assert (heartbeat.message, heartbeat.progress) == ("echoing never", 3)


def test_who_does_not_ask_is_told_no_progress(listening):
    _, record, echo = listening
    with Link(record) as link:
        link.start("never")
        link.call("echo")
        assert echo.report is None
        assert echo.send_log is None


def _kept(store, content, name="a"):
    original = Original(name, "All of it", (FileFormat(".csv", "text/csv", content, 3),), cost=1)
    (link,) = store.keep(original)
    return link


def test_resources_are_listed_in_parts_and_read(listening):
    _, record, echo = listening
    one = _kept(echo.store, lambda: "ä,\ud800")
    two = _kept(echo.store, lambda: b"\x00\xff")
    with Link(record) as link:
        assert link.welcome.resources
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
    slow = _kept(echo.store, lambda: str(go_on.wait(30)))
    quick = _kept(echo.store, lambda: "quick")
    with Link(record) as link:
        link.send(messages.ReadResource(id=1, uri=slow.uri))
        link.send(messages.ReadResource(id=2, uri=quick.uri))
        assert link.receive().id == 2
        assert text_of(link.call("echo", a=1)) == "echo {'a': 1}"
        go_on.set()
        assert link.receive().id == 1


def test_an_unknown_resource_is_told_from_one_that_cannot_be_made(listening):
    _, record, echo = listening
    broken = _kept(echo.store, lambda: 1 / 0)
    with Link(record) as link:
        link.send(messages.ReadResource(id=1, uri=f"{broken.uri}x"))
        assert link.receive().unknown
        link.send(messages.ReadResource(id=2, uri=broken.uri))
        answer = link.receive()
        assert not answer.unknown
        assert "ZeroDivisionError" in answer.error
