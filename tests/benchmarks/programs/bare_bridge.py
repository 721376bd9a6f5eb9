"""A floor: a bridge with nothing in it, and its kernel: ``bare_bridge.py TOOLS PORT|stdio``.

It has what no bridge can do without: the protocol's models, a parser, uvloop, uvicorn over HTTP,
and `bare_kernel.py` as a process of its own behind a socket. No tokens, limits, log or cancelling.
"""

import asyncio
import base64
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import mcp_types as types
import uvicorn
import uvloop
from pydantic_core import from_json
from same_tools import add, fillers

HEAD = struct.Struct(">III")
"""A frame's number, the length of its JSON, and the length of the bytes after it."""
SEND_BUFFER = 2**20
PIECE = 96 * 2**10
"""Bytes of a picture at a time: new memory for all of it would take as long as to encode it."""
Reply = Callable[[list[bytes]], None]
"""Takes an answer, in pieces."""


class Link(asyncio.Protocol):
    """The socket to the kernel."""

    def __init__(self, tools: int) -> None:
        listed = [
            types.Tool(name=f.__name__, description=f.__doc__, input_schema={"type": "object"})
            for f in [add, *fillers(tools - 1)]
        ]
        self.tools = types.ListToolsResult(tools=listed).model_dump_json(by_alias=True).encode()
        self.callers: dict[int, tuple[bytes, Reply]] = {}
        self.number = 0
        self.received = bytearray()

    def connection_made(self, transport) -> None:
        """Keep what to write to."""
        self.transport = transport

    def ask(self, body: bytes, reply: Reply) -> None:
        """Parse a request, and pass it on to the kernel as it came; `reply` gets the answer."""
        request = from_json(body)
        number = b"%d" % request["id"]
        if request["method"] == "tools/list":
            reply(answer(number, self.tools))
            return
        self.number += 1
        self.callers[self.number] = number, reply
        self.transport.writelines([HEAD.pack(self.number, len(body), 0), body])

    def data_received(self, data: bytes) -> None:
        """Take the kernel's results that are complete."""
        self.received += data
        while len(self.received) >= HEAD.size:
            number, size, attached = HEAD.unpack_from(self.received)
            end = HEAD.size + size
            if len(self.received) < end + attached:
                return
            result = bytes(self.received[HEAD.size : end])
            with memoryview(self.received)[end : end + attached] as picture:
                base64_pieces = list(encode(picture))
            del self.received[: end + attached]
            request_id, reply = self.callers.pop(number)
            reply(answer(request_id, result, base64_pieces))


def encode(picture: memoryview) -> Iterator[bytes]:
    """Return base64, in pieces."""
    for start in range(0, len(picture), PIECE):
        with picture[start : start + PIECE] as piece:
            yield base64.b64encode(piece)


def answer(number: bytes, result: bytes, picture: Sequence[bytes] = ()) -> list[bytes]:
    """Return the response to a request; a picture is the end of its result."""
    head = b'{"jsonrpc":"2.0","id":%b,"result":%b' % (number, result)
    return [head, *picture, b'"}]}}'] if picture else [head + b"}"]


class Lines(asyncio.Protocol):
    """The one client over stdio."""

    def __init__(self, link: Link, ended: asyncio.Event) -> None:
        self.link, self.ended = link, ended
        self.received = bytearray()

    def data_received(self, data: bytes) -> None:
        """Ask what came in whole lines."""
        self.received += data
        if data.endswith(b"\n"):
            lines, self.received = bytes(self.received).splitlines(), bytearray()
            for line in lines:
                self.link.ask(line, self.write)

    def write(self, pieces: list[bytes]) -> None:
        """Write an answer."""
        sys.stdout.buffer.writelines([*pieces, b"\n"])
        sys.stdout.buffer.flush()

    def connection_lost(self, _error: Exception | None) -> None:
        """End, as stdin has."""
        self.ended.set()


async def over_stdio(link: Link) -> None:
    """Serve until stdin ends."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: Lines(link, ended), sys.stdin)
    await ended.wait()


async def over_http(link: Link, port: int) -> None:
    """Serve on a port."""

    async def app(_scope, receive, send) -> None:
        body, more = [], True
        while more:
            message = await receive()
            body.append(message["body"])
            more = message.get("more_body")
        answer_future = asyncio.get_running_loop().create_future()
        link.ask(b"".join(body), answer_future.set_result)
        pieces = await answer_future
        length = b"%d" % sum(map(len, pieces))
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, piece in enumerate(pieces, 1):
            more = number < len(pieces)
            await send({"type": "http.response.body", "body": piece, "more_body": more})

    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, access_log=False, log_level="error", lifespan="off"
    )
    await uvicorn.Server(config).serve()


def start_kernel() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the kernel, and return its process and the socket to it."""
    ours, theirs = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    program = str(Path(__file__).with_name("bare_kernel.py"))
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, program, str(number)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[number]), ours


async def main(tools: int, where: str) -> None:
    """Start the kernel, and serve."""
    kernel, connection = start_kernel()
    link = Link(tools)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=connection)
    try:
        await (over_stdio(link) if where == "stdio" else over_http(link, int(where)))
    finally:
        link.transport.abort()
        kernel.wait()


uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
