"""Who may connect to the kernel, and what all bridges are told."""

import socket

import pytest
from live import Link, text_of

from mcp_notebook.wire import messages


def test_a_bridge_is_welcomed_with_the_tools_and_answered(listening):
    _, record, echo = listening
    with Link(record) as link:
        assert link.welcome.tools == echo.tools
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


def test_a_bridge_is_told_why_a_tool_is_missing_also_if_the_tools_are_the_same(listening):
    endpoint, record, echo = listening
    with Link(record) as link:
        echo.missing = {"gone": "`gone` was deleted."}
        endpoint.announce_tools()
        assert link.receive() == messages.Tools(tools=echo.tools, missing=echo.missing)


def test_a_bridge_that_knows_the_tools_already_is_not_told_again(listening):
    endpoint, record, echo = listening
    with Link(record) as early:
        echo.tools = [*echo.tools, messages.ToolInfo(name="new", input_schema={"type": "object"})]
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
        assert "Upgrade mcp-notebook on the kernel's side" in link.welcome.message
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


def test_bridges_are_told_why_the_kernel_leaves(listening):
    endpoint, record, _ = listening
    with Link(record) as link:
        endpoint.stop("The notebook unloaded mcp_notebook.")
        assert link.receive() == messages.Goodbye(reason="The notebook unloaded mcp_notebook.")
        assert link.receive() is None
