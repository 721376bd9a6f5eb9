"""Whatever else may listen in the place of a kernel, for tests of links."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from frame_streams import read_message

from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import Record, read_start_time
from mcp_notebook.wire import frames, messages


@dataclass
class Peer:
    """What listens where a kernel should, and says what a test tells it to say."""

    record: Record
    heard: list[messages.AnyMessage] = field(default_factory=list)
    connections: int = 0
    may_answer: anyio.Event = field(default_factory=anyio.Event)
    """A `Hello` is answered when this is set."""
    called: anyio.Event = field(default_factory=anyio.Event)
    cancelled: anyio.Event = field(default_factory=anyio.Event)
    was_read: anyio.Event = field(default_factory=anyio.Event)
    """Set when a bridge has asked for a resource."""
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when a bridge has hung up."""
    was_told: anyio.Event = field(default_factory=anyio.Event)
    """Set when a bridge has said which clients it has."""
    names_came: anyio.Event = field(default_factory=anyio.Event)
    """Set when a bridge has said which names clients see."""
    resources: Sequence[messages.ResourceInfo] = ()
    """What it lists."""
    writer: asyncio.StreamWriter | None = None

    def say(self, message):
        """Send a message, or bytes that are none, to the bridge that came last."""
        self.writer.writelines([message] if isinstance(message, bytes) else frames.encode(message))

    async def serve(self, answer, reader, writer):
        self.connections += 1
        self.writer = writer
        while (frame := await read_message(reader)) is not None:
            self.heard.append(frame[0])
            if isinstance(frame[0], messages.Hello):
                await self.may_answer.wait()
                self.say(answer)
            elif isinstance(frame[0], messages.Call):
                self.called.set()
            elif isinstance(frame[0], messages.ListResources):
                after = [info for info in self.resources if info.number > frame[0].after]
                page = after[: frame[0].limit]
                self.say(messages.Resources(id=frame[0].id, resources=page))
            elif isinstance(frame[0], messages.Cancel):
                self.cancelled.set()
            elif isinstance(frame[0], messages.ReadResource):
                self.was_read.set()
            elif isinstance(frame[0], messages.Clients):
                self.was_told.set()
                if frame[0].names:
                    self.names_came.set()
        self.left.set()


def welcome(*names, protocol=messages.PROTOCOL_VERSION):
    tools = [messages.ToolInfo(name=name, input_schema={"type": "object"}) for name in names]
    return messages.Welcome(protocol=protocol, version="test", tools=tools)


@asynccontextmanager
async def peer(home, answer, *, name="sales", silent=False):
    """Listen, and answer each `Hello` with this message; at once, or when told to."""
    number = make_id()
    record = Record(
        id=number,
        pid=os.getpid(),
        started=read_start_time(os.getpid()),
        host=socket.gethostname(),
        version="test",
        protocol=1,
        name=name,
        socket=str(home / f"{number}.sock"),
    )
    here = Peer(record)
    if not silent:
        here.may_answer.set()

    async def serve(reader, writer):
        try:
            await here.serve(answer, reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, record.socket)
    try:
        yield here
    finally:
        server.close()
        if here.writer is not None:
            here.writer.close()


def keeping(*names):
    return welcome(*names)
