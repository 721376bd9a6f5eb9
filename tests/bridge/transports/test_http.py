import json
import socket
from urllib.parse import urlsplit

import pytest
from bridges import (
    INVALID_REQUEST,
    NEEDS_TWO_USERS,
    PARSE_ERROR,
    PING,
    TOKEN,
    ask,
    call_line,
    hold_port_of_another_user,
    http_bridge,
)

from mcp_notebook.bridge.transports.http import format_url, open_listener
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.limits import DEFAULT_LIMITS
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings


@pytest.fixture(scope="module")
def served(module_home):
    """An HTTP bridge; whatever the tests send, it must say nothing but refusals on stderr."""
    with http_bridge(module_home) as running:
        yield running
        assert ask(running.url).status == 200
        status, _ = running.end()
        assert status == 0
        later = running.said.splitlines()[4:]
        assert all(line.endswith(": it is not valid HTTP") for line in later), running.said
        assert TOKEN not in running.said


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_a_method_that_mcp_has_not_is_refused_with_those_that_it_has(served, method):
    answer = ask(served.url, method)
    assert answer.status == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "POST", "DELETE"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 400),
        ("GET", {"Accept": "text/html"}, 406),
        ("GET", {"Mcp-Session-Id": "of-yesterday"}, 404),
        ("DELETE", {}, 400),
        ("DELETE", {"Mcp-Session-Id": "of-yesterday"}, 404),
        ("POST", {"Mcp-Session-Id": "of-yesterday"}, 404),
        ("POST", {"Accept": "application/json"}, 406),
        ("POST", {"Accept": None}, 406),
    ],
)
def test_a_request_that_does_not_fit_gets_its_status_and_a_json_rpc_error(
    served, method, headers, status
):
    answer = ask(served.url, method, headers=headers)
    assert answer.status == status
    assert answer.error["code"] == INVALID_REQUEST


@pytest.mark.parametrize("padding", [" ", "\t", " \t "])
def test_space_around_the_value_of_a_header_is_not_part_of_it(served, padding):
    method, version = "server/discover", "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Host": urlsplit(served.url).netloc,
        "Origin": "http://localhost",
        "Mcp-Method": method,
        "Mcp-Protocol-Version": version,
    }
    padded = {name: f"{padding}{value}{padding}" for name, value in headers.items()}
    assert ask(served.url, body=json.dumps(request), headers=padded).status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_with_a_content_type_other_than_json_is_refused(served, kind):
    """A web page may send these without asking first: they must do nothing."""
    assert ask(served.url, headers={"Content-Type": kind}).status == 415


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (call_line(argument=rb'"\ud800"'), PARSE_ERROR),
        (b"[" * 16_000, PARSE_ERROR),
        (b"null", INVALID_REQUEST),
        (json.dumps([PING]).encode(), INVALID_REQUEST),
        (json.dumps(PING).encode(), INVALID_REQUEST),
    ],
    ids=["empty", "half", "no UTF-8", "lone surrogate", "deep", "null", "batch", "no session"],
)
def test_a_body_that_is_not_a_message_gets_400_and_a_json_rpc_error(served, body, code):
    answer = ask(served.url, body=body)
    assert answer.status == 400
    assert answer.error["code"] == code


@pytest.mark.parametrize("path", ["/", "/other", "//mcp", "/mcp/x", "/mcp%00"])
def test_another_path_is_told_where_the_endpoint_is(served, path):
    answer = ask(served.url, path=path)
    assert (answer.status, answer.body) == (404, b"The endpoint is /mcp.")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?x=1"])
def test_the_endpoint_is_found_as_people_write_it(served, path):
    assert ask(served.url, path=path).status == 200


def test_a_message_may_be_as_long_over_http_as_over_stdio(served):
    body = call_line(argument=b'"%b"' % (b"y" * 3_000_000))
    session = ask(served.url).headers["Mcp-Session-Id"]
    answer = ask(served.url, body=body, headers={"Mcp-Session-Id": session})
    result = json.loads(answer.body)["result"]
    assert answer.status == 200
    assert result["content"][0]["text"].startswith("Unknown tool: 'x'.")


def test_a_message_that_is_too_long_is_refused_before_it_is_read(served):
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
        client.sendall(_head(DEFAULT_LIMITS.max_request_bytes + 1))
        assert client.recv(1_000).startswith(b"HTTP/1.1 413 ")


def _head(length):
    return (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def test_a_client_that_leaves_in_the_middle_of_a_request_is_not_logged(served):
    """What the bridge has said is looked at when it ends."""
    parts = urlsplit(served.url)
    for _ in range(3):
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
            client.sendall(_head(100) + b"{")
    assert ask(served.url).status == 200


@pytest.mark.parametrize("request_line", [b"hello\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n"])
def test_other_protocols_than_http_are_refused(served, request_line):
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
        client.sendall(request_line)
        assert client.recv(1_000).startswith(b"HTTP/1.1 400 ")


# -- where it listens ------------------------------------------------------------------------------


def test_an_event_does_not_wait_until_the_one_before_it_is_acknowledged():
    """asyncio sees to that only for sockets that were made with TCP's number; uvloop for all."""
    with (
        open_listener(Settings(port=0)) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_set_and_in_use_is_an_error_that_says_by_whom():
    with open_listener(Settings(port=0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match="in use, perhaps by another `mcp-notebook serve`"):
            open_listener(Settings(port=port))


@NEEDS_TWO_USERS
def test_a_port_that_is_set_and_that_another_user_took_is_told_with_the_danger():
    with (
        hold_port_of_another_user() as port,
        pytest.raises(SettingsError, match=f"Port {port} on .* not by you: .* Replace the token"),
    ):
        open_listener(Settings(port=port))


def test_a_preferred_port_is_taken_unless_it_is_in_use():
    with open_listener(Settings(port=0)) as free:
        port = free.getsockname()[1]
        with open_listener(Settings(), port) as other:
            assert other.getsockname()[1] >= DEFAULT_PORT
            assert other.getsockname()[1] != port
    with open_listener(Settings(), port) as again:
        assert again.getsockname()[1] == port


@pytest.mark.parametrize("host", ["203.0.113.1", "::ffff", "300.1.1.1:x"])
def test_an_address_that_is_not_this_machines_is_one_sentence(host):
    with pytest.raises(SettingsError) as caught:
        open_listener(Settings(host=host, port=0))
    assert host in str(caught.value)
    assert "--host" in str(caught.value)


def test_the_reason_why_an_address_cannot_be_used_is_the_systems_alone():
    with pytest.raises(SettingsError) as caught:
        open_listener(Settings(host="127.0.0.1.invalid", port=0))
    assert "(" not in str(caught.value)
    assert "while" not in str(caught.value)


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_ipv6_is_listened_on_and_told_in_brackets(host):
    try:
        listener = open_listener(Settings(host=host, port=0))
    except SettingsError:
        pytest.skip("no IPv6 here")
    with listener:
        assert format_url(listener) == f"http://[::1]:{listener.getsockname()[1]}/mcp"
