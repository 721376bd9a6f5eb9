"""A process that listens in the place of a kernel and says anything: the bridge goes on.

Its clients get one valid answer for each request, whatever the kernel says of its tools, calls and
resources. ``pytest -m slow`` makes 2,000 calls, ``pytest -m exhaustive`` 10,000.
"""

import asyncio
import json
import os
import socket
import subprocess
from contextlib import suppress
from random import Random

import mcp_types as types
import psutil
import pytest
from bad_input import (
    CONTENTS,
    RESOURCES,
    WELCOME,
    make_kernel_frame,
    make_news,
    make_noise,
    spoil_bytes,
)
from bridges import COMMAND, INITIALIZE, LIMIT, PING, PONG, bridge
from frame_streams import read_message
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import Record, read_start_time, remove_record, write_record
from mcp_notebook.errors import FrameError, LinkError
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = [
    pytest.mark.hypothesis,
    pytest.mark.skipif(os.name == "nt", reason="it listens on a Unix socket"),
]

BATCH = 100
"""Calls of one kernel."""
COUNTS = [
    1,
    pytest.param(20, marks=pytest.mark.slow),
    pytest.param(100, marks=[pytest.mark.exhaustive, pytest.mark.timeout(600)]),
]
"""Batches."""
MOST_GROWTH = 100 * 2**20
"""Bytes of memory."""


def make_record(path, kernel_id=None):
    """Return the record of a kernel that listens on a socket."""
    return Record(
        id=kernel_id or make_id(),
        pid=os.getpid(),
        started=read_start_time(os.getpid()),
        host=socket.gethostname(),
        version="0",
        protocol=1,
        name="hostile",
        socket=path,
    )


class HostileKernel:
    """What listens where a kernel should."""

    def __init__(self, home):
        self._folder = home / ".mcp-notebook" / "kernels"
        self.id = make_id()
        path = str(home / f"{self.id}.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            listener.settimeout(LIMIT)
            write_record(self._folder, make_record(path, self.id))
            self._socket, _ = listener.accept()
        self._socket.settimeout(LIMIT)
        self._stream = self._socket.makefile("rb")
        assert self.take("hello")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        remove_record(self._folder, self.id)
        self._stream.close()
        self._socket.close()

    def receive(self):
        """Return the header of the next frame, None at the end."""
        length = self._stream.read(4)
        if len(length) < 4:
            return None
        return json.loads(self._stream.read(int.from_bytes(length, "big")))

    def take(self, kind):
        """Return the next message of this kind."""
        while (header := self.receive()) is not None:
            if header["type"] == kind:
                return header
        raise AssertionError("the bridge has left")

    def say(self, **header):
        body = json.dumps(header).encode()
        self._socket.sendall(len(body).to_bytes(4, "big") + body)

    def say_readable(self, made):
        """Send frames, but for those that would end the link."""
        self._socket.sendall(b"".join(asyncio.run(find_readable(made))))

    def say_noise(self, noise):
        """Say what nobody understands."""
        self._socket.sendall(noise)


async def find_readable(made):
    """Return the frames that a bridge can read."""
    found = []
    for frame in made:
        reader = asyncio.StreamReader()
        reader.feed_data(frame)
        reader.feed_eof()
        with suppress(FrameError):
            if await read_message(reader) and not await reader.read():
                found.append(frame)
    return found


@pytest.fixture(scope="module")
def client(module_home):
    """A stdio bridge after the handshake."""
    (module_home / ".mcp-notebook" / "kernels").mkdir(parents=True)
    with bridge(module_home, "stdio", stdin=subprocess.PIPE, command=COMMAND) as running:
        running.send(json.dumps(INITIALIZE).encode())
        running.message()
        running.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield running
        running.process.stdin.close()
        assert running.wait() == 0
        assert "Traceback" not in running.said


def ask(client, method, request_id, **params):
    request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    client.send(json.dumps(request).encode())


def answer(client):
    """Return the next answer; all notices before it are valid, too."""
    while "method" in (message := client.message()):
        types.server_notification_adapter.validate_python(message)
    return message


def run(check, batches):
    """Check batches of cases, each from a seed of its own."""
    chosen = settings(max_examples=batches, phases=[Phase.generate])
    chosen(given(st.integers(0, 2**32))(check))()


def list_names(client):
    """Return the names of the tools that clients see, without the bridge's own."""
    ask(client, "tools/list", "tools")
    message = answer(client)
    assert "result" in message, message
    listed = types.ListToolsResult.model_validate(message["result"])
    return [tool.name for tool in listed.tools if tool.name != READ_RESOURCE]


@pytest.mark.parametrize("batches", COUNTS)
def test_each_request_gets_one_valid_answer_whatever_the_kernel_says(client, module_home, batches):
    def check(seed):
        random = Random(seed)
        with HostileKernel(module_home) as kernel:
            kernel.say(**WELCOME)
            while list_names(client) != ["good"]:
                pass
            for number in range(BATCH):
                ask(client, "tools/call", number, name="good", _meta={"progressToken": number})
            ids = [kernel.take("call")["id"] for _ in range(BATCH)]
            kernel.say_readable([frame for call_id in ids for frame in make_news(random, call_id)])
            for call_id in ids:
                kernel.say(type="returned", id=call_id, content=[])
            answers = [answer(client) for _ in range(BATCH)]
            assert sorted(message["id"] for message in answers) == list(range(BATCH))
            for message in answers:
                types.CallToolResult.model_validate(message["result"])
            list_names(client)
            check_resources(random, client, kernel)
            kernel.say_noise(make_noise(random))
        client.send(json.dumps(PING).encode())
        assert answer(client) == PONG

    process = psutil.Process(client.process.pid)
    before = process.memory_info().rss
    run(check, batches)
    assert process.memory_info().rss - before < MOST_GROWTH


def check_resources(random, client, kernel):
    """List and read resources, of which the kernel says anything."""
    ask(client, "resources/list", "resources")
    number = kernel.take("list_resources")["id"]
    kernel.say_readable([make_kernel_frame(random, RESOURCES, number)])
    kernel.say(**RESOURCES | {"id": number})
    types.ListResourcesResult.model_validate(answer(client)["result"])
    ask(client, "resources/read", "resource", uri=f"notebook://{kernel.id}/1")
    number = kernel.take("read_resource")["id"]
    kernel.say_readable([make_kernel_frame(random, CONTENTS, number)])
    kernel.say(type="contents", id=number, error="No.")
    read = answer(client)
    if "error" not in read:
        types.ReadResourceResult.model_validate(read["result"])


# -- in place of a welcome -------------------------------------------------------------------------


async def greet(home, answers):
    """Link a process that answers with these bytes, one after the other, and end the links."""
    given_answers = iter(answers)

    async def serve(_reader, writer):
        writer.write(next(given_answers))
        writer.close()

    path = str(home / "greets.sock")
    server = await asyncio.start_unix_server(serve, path)
    catalog = Catalog()
    async with server, Links(catalog) as links:
        for _ in answers:
            record = make_record(path)
            with suppress(LinkError):
                await links.connect(record)
                list(catalog.list_missing_tools())
    assert len(links) == 0


@pytest.mark.slow
@pytest.mark.parametrize("batches", COUNTS)
def test_whatever_comes_in_place_of_a_welcome_is_one_or_an_error_of_the_link(home, caplog, batches):
    def check(seed):
        random = Random(seed)
        answers = [make_welcome(random) for _ in range(BATCH)]
        asyncio.run(greet(home, answers))
        assert "could not be handled" not in caplog.text

    run(check, batches)


def make_welcome(random):
    """Return the bytes of a welcome, most likely with a fault."""
    frame = make_kernel_frame(random, WELCOME, 1)
    return random.choice((frame, spoil_bytes(random, frame), make_noise(random)))
