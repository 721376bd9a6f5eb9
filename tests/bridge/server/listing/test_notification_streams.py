"""Who is told what on the streams of 2026-07-28; with clients: `test_change_notices`."""

import json
from contextlib import ExitStack
from types import SimpleNamespace

import anyio
import mcp_types as types
import pytest
from endpoints import modern, served
from linked_servers import make_server
from live import TIMEOUT
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.listing.notification_streams import ListsWatcher, Subscriptions
from mcp_notebook.settings.limits import Limits

pytestmark = pytest.mark.anyio

ANN = Caller(name="ann", permissions=Permissions(tools=("sales.*",)))
PARAMS = types.SubscriptionsListenRequestParams(
    notifications=types.SubscriptionFilter(
        tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
    )
)


class Listener:
    """Waits for news, and notes what it is told."""

    request_id = 1

    def __init__(self):
        self.session = SimpleNamespace(send_notification=self._send)
        self._sender, self._told = anyio.create_memory_object_stream(10)

    async def _send(self, notification, **_):
        await self._sender.send(type(notification).__name__.removesuffix("Notification"))

    async def told(self):
        """Return what it was told next."""
        return await self._told.receive()

    def close(self):
        """Return how much it has not read."""
        with self._sender, self._told:
            return self._told.statistics().current_buffer_used


def test_only_the_lists_that_a_caller_sees_differently_are_news():
    lists = {"tool": [1], "prompt": []}
    ann = ListsWatcher(ANN, lambda _who, kind: lists.get(kind))
    assert ann.take_changes() == []
    lists["tool"] = [1, 2]
    ann.note_changes(["tools", "prompts"])
    assert (ann.take_changes(), ann.take_changes()) == (["tools"], [])
    lists["prompt"] = [3]
    assert ann.take_changes() == ["prompts"]


def test_who_sees_everything_is_told_of_a_list_that_changed_back():
    owner = ListsWatcher(OWNER, lambda _who, _kind: None, ["resources"])
    assert owner.take_changes() == ["resources"]
    owner.note_changes(["tools"])
    owner.note_changes(["tools"])
    assert (owner.take_changes(), owner.take_changes()) == (["tools"], [])


async def test_each_caller_is_told_what_concerns_it():
    lists = {"ann": []}
    subscriptions, clients = Subscriptions(), {OWNER: Listener(), ANN: Listener()}
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for caller, client in clients.items():
                watcher = ListsWatcher(
                    caller, lambda who, kind: lists[who.name] if kind == "tool" else None
                )
                tasks.start_soon(subscriptions.listen, client, PARAMS, watcher)
                assert await client.told() == "SubscriptionsAcknowledged"
            subscriptions.note_changes(["tools"])  # a tool that Ann does not see
            await subscriptions.publish_changes()
            await subscriptions.publish("resources", lambda caller: caller is ANN)
            lists["ann"] = ["new"]
            subscriptions.note_changes(["tools"])
            await subscriptions.publish_changes()
            assert await clients[ANN].told() == "ResourceListChanged"
            for caller in (OWNER, OWNER, ANN):
                assert await clients[caller].told() == "ToolListChanged"
            subscriptions.close()
    assert [client.close() for client in clients.values()] == [0, 0]
    await subscriptions.publish_changes()  # to nobody


# -- how many

LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {"notifications": {"toolsListChanged": True}},
}


async def open_stream(here, era):
    """Return the connection of a new stream, and the beginning of the answer on it."""
    if era == "handshake":
        session = await here.open_session()
        client = here.connect(f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}")
    else:
        message, headers = modern(LISTEN)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines])
        client = here.connect(head, json.dumps(message).encode())
    return client, await anyio.to_thread.run_sync(client.recv, 10_000)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_streams_over_http_are_bounded_and_one_that_is_closed_makes_room(home, era):
    async with served(home, max_caller_calls=2) as here:
        with ExitStack() as stack:
            for kind in ("handshake", "modern"):
                client, answer = await open_stream(here, kind)
                stack.enter_context(client)
                assert answer.startswith(b"HTTP/1.1 200 ")
            client, answer = await open_stream(here, era)
            with client:
                while b"}" not in answer:
                    answer += await anyio.to_thread.run_sync(client.recv, 10_000)
            assert b"Too many open streams" in answer
            assert b"can have 2 at a time. Try again when one has ended." in answer
            if era == "handshake":
                assert answer.startswith(b"HTTP/1.1 429 ")
        refused = True
        while refused:  # the server has to notice that the others are closed
            client, answer = await open_stream(here, era)
            with client:
                refused = b"Too many" in answer or not answer.startswith(b"HTTP/1.1 200 ")


async def test_streams_over_stdio_are_bounded_too():
    catalog = Catalog()
    async with Links(catalog) as links:
        server = make_server(catalog, links, limits=Limits(max_caller_calls=1))
        async with Client(server.mcp) as client:
            with anyio.fail_after(TIMEOUT):
                async with client.listen(tools_list_changed=True):
                    with pytest.raises(MCPError, match="Too many open streams: one caller can"):
                        async with client.listen(tools_list_changed=True):
                            pass
                while server.open_streams.shares.explain_lack(OWNER):
                    await anyio.lowlevel.checkpoint()
                async with client.listen(tools_list_changed=True):
                    pass


async def test_a_stream_takes_a_short_filter_only():
    """The filter is kept as long as the stream is open."""
    catalog = Catalog()
    async with Links(catalog) as links:
        server = make_server(catalog, links)
        async with Client(server.mcp) as client:
            with anyio.fail_after(TIMEOUT):
                with pytest.raises(MCPError, match="16,384 bytes"):
                    async with client.listen(resource_subscriptions=["x:y"] * 10_000):
                        pass
                async with client.listen(resource_subscriptions=["x:y"] * 100):
                    pass
