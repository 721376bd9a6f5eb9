"""Who may connect to the kernel, and what all bridges are told."""

import os
import queue
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from live import SOON, Link, text_of

from mcp_notebook.errors import LinkError
from mcp_notebook.kernel.link.endpoint import Endpoint
from mcp_notebook.kernel.link.resource_reader import ResourceReader
from mcp_notebook.kernel.link.tool_changes import CHANGE_DELAY, CHANGE_DELAY_MAX, ToolChanges
from mcp_notebook.text.missing_tools import DroppedTool
from mcp_notebook.wire import frames, messages


def test_a_bridge_is_welcomed_with_the_tools_and_answered(listening):
    _, record, echo = listening
    with Link(record) as link:
        assert link.welcome.tools == echo.tools
        assert text_of(link.call("echo", a=1)) == "echo {'a': 1}"


def test_all_bridges_are_told_of_a_change(listening):
    endpoint, record, echo = listening
    with Link(record) as one, Link(record) as two:
        echo.tools = []
        endpoint.announce_tools()
        assert one.receive() == two.receive() == messages.Tools(tools=[])


def test_why_a_bridge_was_refused_is_known_until_another_one_is_welcomed(listening):
    endpoint, record, _ = listening
    hello = messages.Hello(version="9", protocol=messages.PROTOCOL_VERSION + 1, token=record.token)
    assert endpoint.last_refusal is None
    with Link(record, hello) as link:
        assert endpoint.last_refusal == link.welcome.message
    with Link(record):
        assert endpoint.last_refusal is None


def test_a_change_that_a_call_made_goes_out_before_its_result(listening):
    endpoint, record, echo = listening
    with Link(record) as one, Link(record) as two:
        echo.tools = []
        endpoint.announce_tools()
        one.start("echo")
        assert one.receive() == two.receive() == messages.Tools(tools=[])
        assert text_of(one.receive()) == "echo {}"
        assert text_of(two.call("echo")) == "echo {}"


def test_a_change_waits_for_others_that_follow_but_not_for_long(clock):
    sent = []
    changes = ToolChanges(lambda: sent.append(clock.time()))
    changes.announce(clock)
    clock.advance(CHANGE_DELAY)
    assert sent == [CHANGE_DELAY]
    while len(sent) == 1:
        changes.announce(clock)
        clock.advance(CHANGE_DELAY / 2)
    assert sent[1] == pytest.approx(CHANGE_DELAY + CHANGE_DELAY_MAX)


def test_a_list_that_cannot_be_sent_costs_no_call_its_result(listening):
    endpoint, record, echo = listening
    with Link(record) as link:
        large = "x" * frames.MAX_HEADER
        echo.tools = [messages.ToolInfo(name="a", description=large, input_schema={})]
        endpoint.announce_tools()
        assert text_of(link.call("echo")) == "echo {}"


def test_a_bridge_is_told_why_a_tool_is_missing_also_if_the_tools_are_the_same(listening):
    endpoint, record, echo = listening
    with Link(record) as link:
        echo.missing = {"gone": DroppedTool("`gone` was deleted.", at=1.0)}
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


# -- where the socket is ---------------------------------------------------------------------------


@pytest.fixture
def listen_far(home, echo, monkeypatch):
    """Starts an endpoint whose path is too long for a socket, with this folder for others."""
    if sys.platform == "win32":
        pytest.skip("Unix sockets")
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    endpoint = Endpoint(
        echo,
        lambda _inspects: messages.Tools(tools=[]),
        ResourceReader(echo.store),
        tasks=echo.tasks,
        path=home / ("x" * 100) / "test.sock",
    )
    yield endpoint.start
    endpoint.stop("The test is over.")


def test_a_socket_whose_path_is_too_long_is_in_a_private_folder_of_the_user(home, listen_far):
    path = Path(listen_far().socket)
    assert path.parent == home / f"mcp-notebook-{os.getuid()}"
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_socket_is_not_put_into_a_folder_of_another_user(listen_far, monkeypatch):
    stranger = os.getuid() + 1  # the folder with his number in its name is made by us
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(LinkError, match=f"mcp-notebook-{stranger} is not a folder that the user"):
        listen_far()


def test_a_socket_is_not_put_behind_a_link_to_a_folder(home, listen_far):
    (home / "elsewhere").mkdir(mode=0o700)
    (home / f"mcp-notebook-{os.getuid()}").symlink_to("elsewhere")
    with pytest.raises(LinkError, match="is not a folder that the user owns"):
        listen_far()
    assert list((home / "elsewhere").iterdir()) == []


# -- the clients of bridges ------------------------------------------------------------------------


def test_the_clients_of_all_bridges_are_known_until_they_leave(listening):
    endpoint, record, _ = listening
    changes = queue.SimpleQueue()
    endpoint.on_clients = lambda: changes.put(endpoint.clients)
    editor, chat = (messages.ClientCount(name=name) for name in ("editor", "chat"))
    with Link(record) as link:
        link.send(messages.Clients(clients=[editor]))
        assert changes.get(timeout=SOON) == (editor,)
        with Link(record) as other:
            other.send(messages.Clients(clients=[chat]))
            assert set(changes.get(timeout=SOON)) == {editor, chat}
        assert changes.get(timeout=SOON) == (editor,)
        link.send(messages.Clients(clients=[]))
        assert changes.get(timeout=SOON) == ()


def test_the_names_that_clients_see_are_known_until_their_bridge_leaves(listening):
    endpoint, record, _ = listening
    changes = queue.SimpleQueue()
    endpoint.on_clients = lambda: changes.put(endpoint.listed_names)
    name = messages.ListedName(tool="rain", name="sales_rain", reason="Two.", next_step="Rename.")
    with Link(record) as link:
        link.send(messages.Clients(clients=[], names=[name]))
        assert changes.get(timeout=SOON) == {"rain": name}
    assert changes.get(timeout=SOON) == {}
