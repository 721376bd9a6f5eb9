"""Clients whose messages, and whatever else they send, are written by hand: over HTTP, and lines.

Both reach an endpoint of the test's own process (`endpoints.served`).
"""

import asyncio
import json
import re
from urllib.parse import urlsplit

import anyio
from bridges import TOKEN

from mcp_notebook.bridge.server.requests import expand
from mcp_notebook.bridge.transports.stdio import StdioClient, _Incoming, _LineProtocol
from mcp_notebook.protocol import errors

BROKEN = {
    b"{": errors.PARSE_ERROR,
    b"\xff": errors.PARSE_ERROR,
    b"[" * 5_000: errors.PARSE_ERROR,
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}': errors.PARSE_ERROR,
    b'[{"jsonrpc":"2.0","id":"odd","method":"ping"}]': errors.INVALID_REQUEST,
    b'{"id":"odd","method":"ping"}': errors.INVALID_REQUEST,
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}': errors.INVALID_REQUEST,
    b'{"jsonrpc":"2.0","id":"odd","method":"ping","params":[]}': errors.INVALID_REQUEST,
}
"""Bodies and lines that are no messages, and the code that each is answered."""


class Http:
    """A client each of whose messages has a connection of its own."""

    is_http, status = True, 0

    def __init__(self, here, is_modern):
        self.here, self.is_modern, self.session = here, is_modern, {}

    async def send(self, message, headers=None, verb="POST", *, pause=False):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        fields = {
            "Host": "localhost",
            "Authorization": f"Bearer {TOKEN}",
            "Connection": "close",
            "Accept": "*/*",
            "Content-Type": "application/json",
            "Content-Length": len(body),
            **({"Mcp-Protocol-Version": "2026-07-28"} if self.is_modern else self.session),
            **(headers or {}),
        }
        address = urlsplit(self.here.url)
        sent = Sent(message, *await asyncio.open_connection(address.hostname, address.port))
        head = [f"{verb} /mcp HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
        sent.writer.write("\r\n".join([*head, "", ""]).encode() + body[: len(body) // 2])
        await anyio.sleep(0.001 if pause else 0)
        sent.writer.write(body[len(body) // 2 :])
        return sent

    async def wait_for(self, sent, text):
        sent.read += await sent.reader.readuntil(text)

    async def take(self, sent):
        """Return the answer, if the response has one."""
        head, _, body = (sent.read + await sent.reader.read()).partition(b"\r\n\r\n")
        await sent.hang_up()
        self.status = int(head.split()[1])
        if found := re.search(rb"mcp-session-id: (\w+)", head):
            self.session = {"Mcp-Session-Id": found[1].decode()}
        if b"text/event-stream" in head:
            (body,) = re.findall(rb'data: (.*"(?:result|error)".*)\r\n', body) or [b""]
        return json.loads(body) if body else None


class Stdio:
    """A client that writes lines."""

    is_http = False

    def __init__(self, here, is_modern):
        self.here, self.is_modern, self.heard = here, is_modern, []
        self.place = StdioClient(here.endpoint._server, self.hear)
        self.incoming = _Incoming(asyncio.StreamReader(), self.place, 2**20)
        self.lines = _LineProtocol(self.incoming)

    async def serve(self):
        try:
            await self.incoming.read()
        finally:
            await self.place.close()

    async def hear(self, *pieces):
        self.heard.append(json.loads(b"".join(expand(pieces))))

    async def send(self, message, _headers=None, *, pause=False):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        for part in (line[: len(line) // 2], line[len(line) // 2 :] + b"\n"):
            self.lines.data_received(part)
            await anyio.sleep(0.001 if pause else 0)
        return Sent(message)

    async def wait_for(self, _sent, text):
        await until(lambda: any(text.decode() in each.get("method", "") for each in self.heard))

    async def take(self, sent):
        ids = ("odd", None) if isinstance(sent.message, bytes) else (sent.message["id"],)
        await until(lambda: any("method" not in each and each["id"] in ids for each in self.heard))
        answer = next(each for each in self.heard if "method" not in each and each["id"] in ids)
        self.heard.remove(answer)
        return answer


class Sent:
    """What a client has sent, its connection, and the kernel's number of a call."""

    def __init__(self, message, reader=None, writer=None):
        self.message, self.reader, self.writer = message, reader, writer
        self.read, self.call = b"", 0

    async def hang_up(self):
        self.writer.close()
        await self.writer.wait_closed()


async def until(is_so):
    while not is_so():  # noqa: ASYNC110 - nothing tells
        await anyio.sleep(0.001)
