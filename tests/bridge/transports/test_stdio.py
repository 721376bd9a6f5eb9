"""A bridge over stdio: every line of its client, its end, and a client that does not read."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio
import pytest
from anyio import to_thread
from bridges import (
    INITIALIZE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LIMIT,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PING,
    PONG,
    bridge,
    call_line,
)
from forked_command import list_words
from kernel_stand_ins import peer, welcome
from live import kernel_env

from mcp_notebook.bridge.transports.stdio import _Outgoing
from mcp_notebook.discovery.records import write_record
from mcp_notebook.settings.limits import DEFAULT_LIMITS
from mcp_notebook.wire import messages


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


@contextmanager
def unread_bridge(home):
    """Run a stdio bridge whose output nobody reads, and end it."""
    with subprocess.Popen(
        list_words("stdio"),
        env=kernel_env(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


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
        pytest.param(b"x" * 3_000_000, PARSE_ERROR, None, id="3 MB"),
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
        pytest.param(
            b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None, id="id 1.5"
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","method":"ping","id":null}', INVALID_REQUEST, None, id="id null"
        ),
        pytest.param(call_line(argument=rb'"\ud800"'), PARSE_ERROR, 2, id="lone surrogate"),
        pytest.param(call_line(name=b"\xff"), PARSE_ERROR, 2, id="no UTF-8 in a request"),
        pytest.param(
            rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}',
            PARSE_ERROR,
            None,
            id="its id",
        ),
        pytest.param(
            b"x" * (DEFAULT_LIMITS.max_request_bytes + 1), INVALID_REQUEST, None, id="too long"
        ),
    ],
)
def test_an_invalid_line_is_answered_with_an_error_and_its_id(shared, line, code, answered):
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
        (b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":1}}', INVALID_PARAMS),
        (b'{"jsonrpc":"2.0","id":2,"method":"nobody/knows"}', METHOD_NOT_FOUND),
    ],
    ids=["wrong type", "unknown method"],
)
def test_a_request_that_cannot_be_done_is_answered_shortly(shared, line, code):
    (answer,) = _answers(shared, line, 1)
    assert (answer["id"], answer["error"]["code"]) == (2, code)
    assert len(json.dumps(answer)) < 1_000


@pytest.mark.parametrize(
    "large", [{"argument": b'"%b"' % (b"y" * 3_000_000)}, {"name": b"y" * 3_000_000}]
)
def test_a_large_call_of_no_tool_is_answered_shortly(shared, large):
    (answer,) = _answers(shared, call_line(**large), 1)
    assert answer["result"]["isError"]
    assert len(json.dumps(answer)) < 1_000


@pytest.mark.parametrize("given", [b"", b"\n \n", b'{"jsonrpc": "2.0"'])
def test_a_client_that_leaves_before_its_first_request_is_not_an_error(home, given):
    with bridge(home, "stdio", stdin=subprocess.PIPE) as running:
        running.process.stdin.write(given)
        running.process.stdin.close()
        assert running.wait() == 0
        assert running.said == ""


@pytest.mark.parametrize("first", ["stdin", "stdout"])
def test_a_client_that_ends_and_closes_both_pipes_is_not_an_error(home, first):
    with unread_bridge(home) as process:
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
from mcp_notebook.cli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pass_fds")
def test_output_of_a_library_to_the_descriptor_of_stdout_stays_out_of_the_protocol(home):
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


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_that_runs_when_the_bridge_stops_is_told_so(home, era):
    count = 20
    async with peer(home, welcome("top")) as kernel:
        folder = home / ".mcp-notebook" / "kernels"
        folder.mkdir(parents=True)
        write_record(folder, kernel.record)

        def open_bridge():
            params = {"name": "top", "arguments": {}, "_meta": MODERN if era == "modern" else {}}
            running = bridges.enter_context(bridge(home, "stdio", stdin=subprocess.PIPE))
            if era == "handshake":
                running.send(json.dumps(INITIALIZE).encode())
                running.line()
            call = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
            for number in range(count):
                running.send(json.dumps(call | {"id": number}).encode())
            return running

        with ExitStack() as bridges:
            running = await to_thread.run_sync(open_bridge)
            with anyio.fail_after(LIMIT):
                while sum(isinstance(item, messages.Call) for item in kernel.heard) < count:
                    kernel.called = anyio.Event()
                    await kernel.called.wait()
            status, _ = await to_thread.run_sync(running.end)
            answers = [running.message() for _ in range(count)]
    assert status == 0
    assert {answer["id"] for answer in answers} == set(range(count))
    for answer in answers:
        assert answer["result"]["isError"] is True
        (text,) = (block["text"] for block in answer["result"]["content"])
        assert text == "The bridge was stopped, and the call was cancelled."


@asynccontextmanager
async def outgoing_to_pipe():
    """Yield what writes to a pipe, its transport, and the end that a client reads."""
    reader, writer = os.pipe()
    outgoing = _Outgoing()
    pipe = os.fdopen(writer, "wb", 0)
    transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: outgoing, pipe)
    with os.fdopen(reader, "rb") as lines, anyio.fail_after(LIMIT):
        yield outgoing, transport, lines
    transport.close()


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
async def test_a_client_that_does_not_read_holds_up_the_answers_which_do_not_pile_up():
    size, count = 200_000, 20
    async with (
        outgoing_to_pipe() as (outgoing, transport, lines),
        anyio.create_task_group() as tasks,
    ):
        for number in range(count):
            answer = {"jsonrpc": "2.0", "id": number, "result": {"a": "x" * size}}
            tasks.start_soon(outgoing.send, json.dumps(answer).encode())
        await anyio.wait_all_tasks_blocked()
        assert 0 < transport.get_write_buffer_size() < 2 * size
        answers = await to_thread.run_sync(
            lambda: [json.loads(lines.readline()) for _ in range(count)]
        )
    assert [answer["id"] for answer in answers] == list(range(count))


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
async def test_a_call_with_endless_messages_lets_a_slow_client_have_the_answers_of_others():
    async with outgoing_to_pipe() as (outgoing, _transport, lines):

        async def say_without_end():
            while True:
                await outgoing.send(b"x" * 200_000)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say_without_end)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(outgoing.send, b"answer")
            await anyio.wait_all_tasks_blocked()
            first = await to_thread.run_sync(lambda: [lines.readline(), lines.readline()])
            tasks.cancel_scope.cancel()
    assert first[1] == b"answer\n"


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
async def test_a_message_whose_sender_is_cancelled_is_written_whole_and_before_the_next():
    size = 200_000
    async with outgoing_to_pipe() as (outgoing, transport, lines):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outgoing.send, b"1" * size)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outgoing.send, b"2" * size)
            await anyio.wait_all_tasks_blocked()
            assert transport.get_write_buffer_size() <= size
            read = await to_thread.run_sync(lambda: [lines.readline(), lines.readline()])
    assert read == [b"1" * size + b"\n", b"2" * size + b"\n"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", ["EOF", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_a_client_that_does_not_read_does_not_keep_the_bridge_from_ending(home, how):
    unknown = json.dumps(PING | {"method": "x" * 50_000}).encode()  # the answer has it, too
    with unread_bridge(home) as process:
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n" + (unknown + b"\n") * 100)
        process.stdin.flush()
        if how == "EOF":
            process.stdin.close()
        else:
            process.terminate()
        assert process.wait(LIMIT) == 0
        assert process.stderr.read() == b""
