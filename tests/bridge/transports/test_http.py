import json
import os
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from bridges import COMMAND, INITIALIZE, LIMIT, TOKEN, ask, bridge, http_bridge
from live import kernel_env

from mcp_notebook.bridge.transports.http import MAX_MESSAGE, listen, url_of
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings import DEFAULT_PORT, Settings

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
PING = {"jsonrpc": "2.0", "id": "still there?", "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": "still there?", "result": {}}


def _call(name=b"x", argument=b"1"):
    return (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%b","arguments":{"a":%b}}}'
        % (name, argument)
    )


# -- stdio -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(module_home):
    """A stdio bridge after the handshake; whatever the tests send, stderr must stay empty."""
    with bridge(module_home, "stdio", stdin=subprocess.PIPE) as running:
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["id"] == "hello"
        yield running
        assert running.process.poll() is None
        running.process.stdin.close()
        assert running.wait() == 0
        assert running.said == ""
        assert running.line() == b""


def _answers(running, line, count):
    """Send a line, and return its answers; a request behind it must be answered, too."""
    running.send(line)
    running.send(json.dumps(PING).encode())
    messages = [running.message() for _ in range(count + 1)]
    messages.remove(PONG)
    return messages


@pytest.mark.parametrize(
    ("line", "code", "answered"),
    [
        pytest.param(b"hello?", PARSE_ERROR, None, id="no JSON"),
        pytest.param(b"{", PARSE_ERROR, None, id="half an object"),
        pytest.param(b"\0\0", PARSE_ERROR, None, id="NUL"),
        pytest.param(b"\xef\xbb\xbf{}", PARSE_ERROR, None, id="BOM"),
        pytest.param(b"\xff\xfe\x80", PARSE_ERROR, None, id="no UTF-8"),
        pytest.param(b"[" * 200_000, PARSE_ERROR, None, id="deep"),
        pytest.param(b"x" * 10_000_000, PARSE_ERROR, None, id="10 MB"),
        pytest.param(b"null", INVALID_REQUEST, None, id="null"),
        pytest.param(b"1e400", INVALID_REQUEST, None, id="number"),
        pytest.param(b"[]", INVALID_REQUEST, None, id="empty batch"),
        pytest.param(b'{"id":2}', INVALID_REQUEST, None, id="no method"),
        pytest.param(b'{"id":2,"method":"ping"}', INVALID_REQUEST, 2, id="no version"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}',
            INVALID_REQUEST,
            "a",
            id="positional parameters",
        ),
        pytest.param(_call(argument=rb'"\ud800"'), PARSE_ERROR, 2, id="lone surrogate"),
        pytest.param(_call(name=b"\xff"), PARSE_ERROR, 2, id="no UTF-8 in a request"),
        pytest.param(
            rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}',
            PARSE_ERROR,
            None,
            id="its id",
        ),
        pytest.param(b"x" * (MAX_MESSAGE + 1), INVALID_REQUEST, None, id="too long"),
    ],
)
def test_a_line_that_is_no_message_is_answered_with_an_error_and_its_id(
    shared, line, code, answered
):
    (answer,) = _answers(shared, line, 1)
    assert answer["error"]["code"] == code
    assert answer["id"] == answered
    assert len(answer["error"]["message"]) < 200


def test_each_request_of_a_batch_is_told_that_batches_are_not_taken(shared):
    batch = [PING | {"id": 3}, {"jsonrpc": "2.0", "method": "ping"}, PING | {"id": "b"}]
    answers = _answers(shared, json.dumps(batch).encode(), 3)
    assert [answer["id"] for answer in answers] == [3, None, "b"]
    assert all("Batches" in answer["error"]["message"] for answer in answers)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" \t ",
        b"\r",
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
        b'{"jsonrpc":"2.0","method":"notifications/nobody/knows"}',
    ],
)
def test_what_needs_no_answer_gets_none(shared, line):
    assert _answers(shared, line, 0) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (_call(argument=b'"%b"' % (b"y" * 10_000_000)), INVALID_PARAMS),
        (_call(name=b"y" * 10_000_000), INVALID_PARAMS),
        (b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":1}}', INVALID_PARAMS),
        (b'{"jsonrpc":"2.0","id":2,"method":"nobody/knows"}', METHOD_NOT_FOUND),
    ],
    ids=["10 MB argument", "10 MB name", "wrong type", "unknown method"],
)
def test_a_request_that_cannot_be_done_is_answered_shortly(shared, line, code):
    (answer,) = _answers(shared, line, 1)
    assert (answer["id"], answer["error"]["code"]) == (2, code)
    assert len(json.dumps(answer)) < 1_000


def test_a_carriage_return_belongs_to_the_line_end(shared):
    (answer,) = _answers(shared, json.dumps(PING | {"id": 5}).encode() + b"\r", 1)
    assert answer == PONG | {"id": 5}


@pytest.mark.parametrize("given", [b"", b"\n \n", b'{"jsonrpc": "2.0"'])
def test_a_client_that_leaves_before_its_first_request_is_no_error(home, given):
    with bridge(home, "stdio", stdin=subprocess.PIPE) as running:
        running.process.stdin.write(given)
        running.process.stdin.close()
        assert running.wait() == 0
        assert running.said == ""


@pytest.mark.parametrize("first", ["stdin", "stdout"])
def test_a_client_that_ends_and_takes_both_pipes_with_it_is_no_error(home, first):
    with subprocess.Popen(
        [*COMMAND, "stdio"],
        env=kernel_env(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        pipes = [process.stdin, process.stdout]
        for pipe in pipes if first == "stdin" else reversed(pipes):
            pipe.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT) == 0


STRAY = """
import os, sys, threading

def write():
    os.read(int(sys.argv.pop()), 1)
    os.write(1, b"from the descriptor\\n")
    print("from print", flush=True)
    os.system("echo from a child; cat")

thread = threading.Thread(target=write)
thread.start()
from mcp_notebook.cli import main
sys.argv[1:2] = ["stdio"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pass_fds")
def test_what_a_library_writes_to_the_descriptor_of_stdout_is_no_protocol(home):
    """Nor does a child that reads stdin get what the client sends."""
    reader, writer = os.pipe()
    arguments = ["stdio", str(reader)]
    command = [sys.executable, "-c", STRAY]
    with bridge(
        home, *arguments, command=command, stdin=subprocess.PIPE, pass_fds=[reader]
    ) as running:
        os.close(reader)
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["id"] == "hello"
        os.write(writer, b"!")
        os.close(writer)
        running.wait_said("from the descriptor\nfrom print\nfrom a child\n")
        assert _answers(running, b"", 0) == []
        running.process.stdin.close()
        assert running.wait() == 0
        assert running.line() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", ["EOF", "SIGTERM"])
def test_a_client_that_does_not_read_does_not_keep_the_bridge_from_ending(home, how):
    unknown = json.dumps(PING | {"method": "x" * 50_000}).encode()  # the answer has it, too
    with subprocess.Popen(
        [*COMMAND, "stdio"],
        env=kernel_env(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n" + (unknown + b"\n") * 100)
            process.stdin.flush()
            if how == "EOF":
                process.stdin.close()
            else:
                process.terminate()
            assert process.wait(LIMIT) == 0
        finally:
            process.kill()
        assert process.stderr.read() == b""


# -- HTTP ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(module_home):
    """An HTTP bridge; whatever the tests send, it must say nothing more on stderr."""
    with http_bridge(module_home) as running:
        yield running
        assert ask(running.url).status == 200
        status, _ = running.end()
        assert status == 0
        assert len(running.said.splitlines()) == 3, running.said
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
def test_space_around_the_value_of_a_header_is_no_part_of_it(served, padding):
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
def test_a_body_that_is_said_to_be_no_json_is_refused(served, kind):
    """A web page may send these without asking first: they must do nothing."""
    assert ask(served.url, headers={"Content-Type": kind}).status == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (_call(argument=rb'"\ud800"'), PARSE_ERROR),
        (b"[" * 200_000, PARSE_ERROR),
        (b"null", INVALID_PARAMS),
        (json.dumps([PING]).encode(), INVALID_PARAMS),
        (json.dumps(PING).encode(), INVALID_REQUEST),
    ],
    ids=["empty", "half", "no UTF-8", "lone surrogate", "deep", "null", "batch", "no session"],
)
def test_a_body_that_is_no_message_gets_400_and_a_json_rpc_error(served, body, code):
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


def _with_text(characters):
    message = INITIALIZE | {"params": INITIALIZE["params"] | {"more": "y" * characters}}
    return json.dumps(message).encode()


def test_a_message_may_be_as_long_over_http_as_over_stdio(served):
    assert ask(served.url, body=_with_text(10_000_000)).status == 200


def test_a_message_that_is_too_long_is_refused_before_it_is_read(served):
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
        client.sendall(_head(MAX_MESSAGE + 1))
        assert client.recv(1_000).startswith(b"HTTP/1.1 413 ")


def _head(length):
    return (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def test_a_client_that_leaves_in_the_middle_of_a_request_is_no_news(served):
    """What the bridge has said is looked at when it ends."""
    parts = urlsplit(served.url)
    for _ in range(3):
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
            client.sendall(_head(100) + b"{")
    assert ask(served.url).status == 200


@pytest.mark.parametrize("request_line", [b"hello\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_refused(served, request_line):
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
        client.sendall(request_line)
        assert client.recv(1_000).startswith(b"HTTP/1.1 400 ")


# -- where it listens ------------------------------------------------------------------------------


def test_port_0_is_any_free_port():
    with listen(Settings(port=0)) as first, listen(Settings(port=0)) as second:
        assert url_of(first) != url_of(second)
        assert url_of(first) == f"http://127.0.0.1:{first.getsockname()[1]}/mcp"


def test_the_usual_port_or_the_next_free_one_is_taken_when_none_is_asked_for():
    with listen(Settings()) as first, listen(Settings()) as second:
        assert DEFAULT_PORT <= first.getsockname()[1] < second.getsockname()[1]


def test_a_preferred_port_is_taken_unless_it_is_in_use():
    with listen(Settings(port=0)) as free:
        port = free.getsockname()[1]
        with listen(Settings(), port) as other:
            assert other.getsockname()[1] >= DEFAULT_PORT
            assert other.getsockname()[1] != port
    with listen(Settings(), port) as again:
        assert again.getsockname()[1] == port


@pytest.mark.parametrize("host", ["203.0.113.1", "::ffff", "300.1.1.1:x"])
def test_an_address_that_is_not_this_machines_is_one_sentence(host):
    with pytest.raises(SettingsError) as caught:
        listen(Settings(host=host, port=0))
    assert host in str(caught.value)
    assert "--host" in str(caught.value)


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_ipv6_is_listened_on_and_told_in_brackets(host):
    try:
        listener = listen(Settings(host=host, port=0))
    except SettingsError:
        pytest.skip("no IPv6 here")
    with listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}/mcp"
