"""The links of a bridge: to real kernels, and to whatever else may listen in their place."""

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from live import TIMEOUT, record_of, text_of

from mcp_notebook.bridge.kernels import link as link_module
from mcp_notebook.bridge.kernels import links as links_module
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery import Record, make_id, read_start_time
from mcp_notebook.errors import KernelGone, LinkError, ResourceFailed, UnknownResource
from mcp_notebook.wire import frames, messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


@dataclass
class Peer:
    """What listens where a kernel should, and says what a test tells it to say."""

    record: Record
    heard: list[messages.AnyMessage] = field(default_factory=list)
    connections: int = 0
    may_answer: anyio.Event = field(default_factory=anyio.Event)
    """A `Hello` is answered when this is set."""
    called: anyio.Event = field(default_factory=anyio.Event)
    was_read: anyio.Event = field(default_factory=anyio.Event)
    """Set when a bridge has asked for a resource."""
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when a bridge has hung up."""
    writer: asyncio.StreamWriter | None = None

    def say(self, message):
        """Send a message, or bytes that are none, to the bridge that came last."""
        self.writer.writelines([message] if isinstance(message, bytes) else frames.encode(message))

    async def serve(self, answer, reader, writer):
        self.connections += 1
        self.writer = writer
        while (frame := await frames.read_message(reader)) is not None:
            self.heard.append(frame[0])
            if isinstance(frame[0], messages.Hello):
                await self.may_answer.wait()
                self.say(answer)
            elif isinstance(frame[0], messages.Call):
                self.called.set()
            elif isinstance(frame[0], messages.ReadResource):
                self.was_read.set()
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
        host="test",
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


class Seen:
    """A catalogue, and waits for what it shows."""

    def __init__(self):
        self.catalog = Catalog()
        self._changed = anyio.Event()

    def changed(self):
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, *names):
        with anyio.fail_after(TIMEOUT):
            while [entry.name for entry in self.catalog.entries()] != list(names):
                await self._changed.wait()


@asynccontextmanager
async def following(seen, *sets):
    """Yield links that have followed these sets of records."""

    async def records():
        for current in sets:
            yield tuple(current)
        await anyio.sleep_forever()

    async with (
        Links(seen.catalog, on_change=seen.changed) as links,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(links.follow, records())
        yield links
        tasks.cancel_scope.cancel()


async def settled(links):
    with anyio.fail_after(TIMEOUT):
        await links.wait_until_settled()


@asynccontextmanager
async def calling(links, entry):
    """Have a call run for the length of the block; yield where its error will be."""
    errors = []

    async def call():
        try:
            await links.call(entry, {})
        except KernelGone as error:
            errors.append(str(error))

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            yield errors


async def test_a_linked_kernels_tools_follow_it_and_can_be_called(kernel):
    kernel.ok("%%mcp_tool\ndef double(x: int):\n    return 2 * x")
    seen = Seen()
    async with following(seen, [record_of(kernel)]) as links:
        await settled(links)
        assert len(links) == 1
        assert text_of(await links.call(seen.catalog.find("double"), {"x": 21})) == "42"
        await anyio.to_thread.run_sync(kernel.ok, "%%mcp_tool\ndef half(x: int):\n    return x / 2")
        await seen.until("double", "half")
        gone = seen.catalog.find("double")
        await anyio.to_thread.run_sync(kernel.ok, "%unload_ext mcp_notebook")
        await seen.until()
        with pytest.raises(KernelGone, match="'double' is gone"):
            await links.call(gone, {"x": 1})


async def test_notebooks_are_in_the_order_of_their_records_whoever_answers_first(home):
    seen = Seen()
    async with (
        peer(home, welcome("top"), silent=True) as slow,
        peer(home, welcome("top")) as quick,
        following(seen, [slow.record, quick.record]),
    ):
        await seen.until("top")
        slow.may_answer.set()
        await seen.until("sales.top", "sales-2.top")
        assert seen.catalog.find("sales.top").kernel_id == slow.record.id


async def test_a_call_is_told_how_its_notebook_left(home):
    seen = Seen()
    async with (
        peer(home, welcome("top")) as notebook,
        following(seen, [notebook.record]) as links,
    ):
        await seen.until("top")
        async with calling(links, seen.catalog.find("top")) as errors:
            await notebook.called.wait()
            notebook.say(messages.Goodbye(reason="The kernel was restarted."))
            notebook.writer.close()
    (error,) = errors
    assert error.startswith(
        "The call was lost: The kernel was restarted. The tools of 'sales' return"
    )


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x02[]",
        b'\x00\x00\x00\x05{"a":',
        messages.Call(id=1, tool="top", arguments={}),
    ],
    ids=["http", "no object", "no JSON", "not a kernel's message"],
)
async def test_what_no_kernel_says_ends_that_link_and_no_other(home, said):
    seen = Seen()
    async with (
        peer(home, welcome("top")) as odd,
        peer(home, welcome("other")) as even,
        following(seen, [odd.record, even.record]) as links,
    ):
        await seen.until("top", "other")
        async with calling(links, seen.catalog.find("top")) as errors:
            await odd.called.wait()
            odd.say(said)
        await seen.until("other")
        assert "The link to the kernel failed" in errors[0]
        assert len(links) == 1


async def test_an_answer_to_no_call_is_ignored(home):
    seen = Seen()
    async with (
        peer(home, welcome("top")) as notebook,
        following(seen, [notebook.record]) as links,
    ):
        await seen.until("top")
        notebook.say(messages.Returned(id=99, content=[]))
        notebook.say(messages.Progress(id=99, progress=1))
        notebook.say(messages.Tools(tools=welcome("new").tools))
        await seen.until("new")
        assert len(links) == 1


async def test_a_kernel_that_is_silent_is_told_and_asked_again_until_it_answers(home, monkeypatch):
    monkeypatch.setattr(link_module, "CONNECT_TIMEOUT", 0.05)
    monkeypatch.setattr(links_module, "RETRY_AFTER", 0.05)
    seen = Seen()
    async with (
        peer(home, welcome("top"), silent=True) as notebook,
        following(seen, [notebook.record]) as links,
    ):
        await settled(links)
        assert len(links) == 0
        assert links.problems == ("The kernel of 'sales' did not answer within 0.05 s.",)
        notebook.may_answer.set()
        await seen.until("top")
        assert links.problems == ()
        assert notebook.connections > 1


async def test_a_kernel_of_another_protocol_version_is_told_once_and_left_alone(home, monkeypatch):
    monkeypatch.setattr(links_module, "RETRY_AFTER", 0)
    seen = Seen()
    other = welcome("top", protocol=messages.PROTOCOL_VERSION + 1)
    async with (
        peer(home, other) as newer,
        peer(home, welcome("other")) as notebook,
        following(seen, [newer.record, notebook.record]) as links,
    ):
        await settled(links)
        assert newer.connections == 1
        (problem,) = links.problems
        assert "upgrade" in problem.lower()
        await seen.until("other")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (messages.Refused(message="The token is wrong."), "sales: The token is wrong."),
        (messages.Goodbye(reason="no"), "is not a kernel of mcp-notebook"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not a kernel of mcp-notebook"),
    ],
)
async def test_who_does_not_say_welcome_is_not_linked(home, answer, problem):
    async with peer(home, answer) as odd:
        catalog = Catalog()
        with pytest.raises(LinkError, match=problem):
            async with Links(catalog, on_change=lambda: None) as links:
                await links.connect(odd.record)
        assert catalog.entries() == ()


async def test_a_record_without_a_listener_is_one_sentence(home):
    async with peer(home, welcome()) as gone:
        pass
    with pytest.raises(LinkError, match="kernel of 'sales' cannot be reached"):
        async with Links(Catalog(), on_change=lambda: None) as links:
            await links.connect(gone.record)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
async def test_the_socket_of_another_user_is_not_spoken_to(home):
    async with peer(home, welcome("top")) as theirs:
        os.chown(theirs.record.socket, 12345, -1)
        with pytest.raises(LinkError, match="belongs to another user"):
            async with Links(Catalog(), on_change=lambda: None) as links:
                await links.connect(theirs.record)
        assert theirs.connections == 0


async def test_an_error_of_the_block_comes_out_as_it_is(home):
    async with peer(home, welcome("top")) as notebook:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is the point
            async with Links(Catalog(), on_change=lambda: None) as links:
                await links.connect(notebook.record)
                raise ZeroDivisionError


async def test_calls_are_answered_when_the_bridge_ends_its_links(home):
    seen = Seen()
    async with peer(home, welcome("top")) as notebook, anyio.create_task_group() as tasks:
        ended = []

        async def call(links):
            with pytest.raises(KernelGone, match="The bridge was stopped"):
                await links.call(seen.catalog.find("top"), {})
            ended.append(True)

        async with Links(seen.catalog, on_change=seen.changed) as links:
            await links.connect(notebook.record)
            tasks.start_soon(call, links)
            with anyio.fail_after(TIMEOUT):
                await notebook.called.wait()
        with anyio.fail_after(TIMEOUT):
            await notebook.left.wait()
    assert ended
    assert [message.type for message in notebook.heard] == ["hello", "call", "cancel"]


async def test_a_call_that_is_no_longer_wanted_is_cancelled_in_the_kernel(home):
    seen = Seen()
    async with (
        peer(home, welcome("top")) as notebook,
        following(seen, [notebook.record]) as links,
        anyio.create_task_group() as tasks,
    ):
        await seen.until("top")
        tasks.start_soon(links.call, seen.catalog.find("top"), {})
        await notebook.called.wait()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(TIMEOUT):
        while notebook.heard[-1].type != "cancel":
            await anyio.lowlevel.checkpoint()
    assert notebook.heard[-1].id == notebook.heard[-2].id


async def test_who_keeps_a_kernel_tells_its_calls_how_it_ended(home):
    seen = Seen()
    told = anyio.Event()

    async def obituary():
        links.set_away(notebook.record.id, "It is being restarted.")
        await told.wait()
        return "It fell over."

    async with (
        peer(home, welcome("top")) as notebook,
        Links(seen.catalog, on_change=seen.changed) as links,
    ):
        async with links.open_link(notebook.record, obituary) as link:
            async with calling(links, seen.catalog.find("top")) as errors:
                await notebook.called.wait()
                notebook.writer.close()
                await seen.until()  # the tools go before the calls are answered
                assert errors == []
                told.set()
            await link.end.wait()
        assert errors == ["It fell over."]
        with pytest.raises(KernelGone, match="being restarted"):
            seen.catalog.find("top")
        async with links.open_link(notebook.record, obituary):
            assert [entry.name for entry in seen.catalog.entries()] == ["top"]


async def test_calls_are_answered_although_nobody_finds_out_how_the_kernel_ended(home, monkeypatch):
    monkeypatch.setattr(links_module, "END_LIMIT", 0.05)
    seen = Seen()
    async with (
        peer(home, welcome("top")) as notebook,
        Links(seen.catalog, on_change=seen.changed) as links,
        links.open_link(notebook.record, anyio.sleep_forever),
    ):
        async with calling(links, seen.catalog.find("top")) as errors:
            await notebook.called.wait()
            notebook.writer.close()
        assert "closed the link, and the call was lost" in errors[0]


async def test_a_kernel_that_was_killed_is_told_as_dead_though_its_process_ends_later(kernel):
    kernel.ok("%%mcp_tool\nimport asyncio\nasync def wait():\n    await asyncio.sleep(60)")
    seen = Seen()
    async with following(seen, [record_of(kernel)]) as links:
        await seen.until("wait")
        async with calling(links, seen.catalog.find("wait")) as errors:
            os.kill(kernel.pid, 9)
        assert "The kernel of" in errors[0]
        assert "died" in errors[0]


# -- resources -------------------------------------------------------------------------------------


def keeping(*names):
    return welcome(*names).model_copy(update={"resources": True})


async def test_a_kernel_that_is_too_old_for_resources_is_not_asked_for_them(home):
    async with peer(home, welcome("a")) as old, Links(Catalog(), on_change=int) as links:
        await links.connect(old.record)
        assert await links.open_links[0].list_resources(0, 10) == []
        with pytest.raises(KernelGone, match="has no resources"):
            await links.read_resource(f"notebook://{old.record.id}/1/a.csv")
        assert [type(message) for message in old.heard] == [messages.Hello]


async def test_a_kernel_that_does_not_answer_in_time_is_said_to_have_nothing(home, monkeypatch):
    monkeypatch.setattr(link_module, "LIST_LIMIT", 0.05)
    monkeypatch.setattr(link_module, "READ_LIMIT", 0.05)
    async with peer(home, keeping("a")) as mute, Links(Catalog(), on_change=int) as links:
        await links.connect(mute.record)
        assert await links.open_links[0].list_resources(0, 10) == []
        with pytest.raises(ResourceFailed, match=r"within 0\.05 s, the time limit"):
            await links.read_resource(f"notebook://{mute.record.id}/1/a.csv")
        # What comes late is nobody's.
        mute.say(messages.Contents(id=2, error="late"))
        mute.say(messages.Tools(tools=[]))


async def test_what_is_asked_of_a_kernel_that_dies_is_answered_at_once(home):
    async with peer(home, keeping("a")) as dying, Links(Catalog(), on_change=int) as links:
        await links.connect(dying.record)
        (link,) = links.open_links
        uri = f"notebook://{dying.record.id}/1/a.csv"
        async with anyio.create_task_group() as tasks:

            async def read():
                with pytest.raises(KernelGone, match="is gone, and its resources"):
                    await links.read_resource(uri)

            with anyio.fail_after(TIMEOUT):
                tasks.start_soon(read)
                await dying.was_read.wait()
                dying.writer.close()
        with anyio.fail_after(TIMEOUT):
            await link.end.wait()
        with pytest.raises(UnknownResource, match="is gone"):
            await links.read_resource(uri)


@pytest.mark.parametrize("uri", ["", "notebook://", "notebook:///a", "file:///a", "notebook://k"])
async def test_what_is_no_kernels_uri_is_unknown(uri):
    async with Links(Catalog(), on_change=int) as links:
        with pytest.raises(UnknownResource, match="does not exist"):
            await links.read_resource(uri)
