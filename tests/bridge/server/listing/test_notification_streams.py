"""Who is told what on the streams of 2026-07-28; with clients: `test_change_notices`."""

import json
from contextlib import ExitStack, asynccontextmanager

import anyio
import pytest
from endpoints import modern, served
from judge import in_process
from linked_servers import make_server
from live import TIMEOUT
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types.methods import parse_server_notification, validate_server_result

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.listing.notification_streams import (
    MAX_EVENTS,
    ListsWatcher,
    NotificationStreams,
)
from mcp_notebook.bridge.server.requests import expand
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest, RequestChannel
from mcp_notebook.protocol.errors import INVALID_PARAMS
from mcp_notebook.protocol.messages import Request
from mcp_notebook.protocol.methods import Subscriptions
from mcp_notebook.protocol.versions import LATEST_MODERN as VERSION
from mcp_notebook.protocol.versions import SUBSCRIPTION_ID_KEY
from mcp_notebook.settings.limits import Limits

pytestmark = pytest.mark.anyio

ANN = Caller(name="ann", permissions=Permissions(tools=("sales.*",)))
ALL = Subscriptions(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
URIS = ["notebook://k/1/a", "notebook://k/1/b"]


class Listener:
    """A client of 2026-07-28 that listens; each message to it is one of MCP's.

    Args:
        caller: Who it is.
        request_id: The id of the request that opens its stream.
    """

    def __init__(self, caller=OWNER, request_id=1):
        self.request = ClientRequest(
            profile=read_profile(VERSION, None, {}),
            id=request_id,
            caller=caller,
            meta={},
            is_stdio=True,
            channel=RequestChannel(self._take, {}),
        )
        self.may_read = anyio.Event()
        self.may_read.set()
        self._sender, self._told = anyio.create_memory_object_stream(2 * MAX_EVENTS)

    async def _take(self, message):
        await self.may_read.wait()
        message = json.loads(message)
        read = parse_server_notification(message["method"], VERSION, message["params"])
        assert message["params"]["_meta"] == {SUBSCRIPTION_ID_KEY: self.request.id}
        self._sender.send_nowait((type(read).__name__.removesuffix("Notification"), message))

    async def told(self):
        """Return what it was told next."""
        with anyio.fail_after(TIMEOUT):
            name, self.message = await self._told.receive()
        return name

    def close(self):
        """Return how much it has not read."""
        with self._sender, self._told:
            return self._told.statistics().current_buffer_used


@asynccontextmanager
async def streams_to(*listeners, wanted=ALL, list_entries=lambda _who, _kind: None):
    """Yield the streams of clients that have been told what they will be told of."""
    streams = NotificationStreams()
    async with anyio.create_task_group() as tasks:
        for listener in listeners:
            watcher = ListsWatcher(listener.request.caller, list_entries)
            tasks.start_soon(streams.serve, listener.request, wanted, watcher)
            assert await listener.told() == "SubscriptionsAcknowledged"
        yield streams
        streams.close()  # else the tasks would not end


def test_only_the_lists_that_a_caller_sees_differently_are_news():
    lists = {"tool": [1], "prompt": []}
    ann = ListsWatcher(ANN, lambda _who, kind: lists.get(kind))
    assert ann.take_changes() == []
    lists["tool"] = [1, 2]
    assert (ann.take_changes(), ann.take_changes()) == (["tools"], [])
    lists["prompt"] = [3]
    assert ann.take_changes() == ["prompts"]


def test_who_sees_everything_is_told_of_a_list_that_changed_back():
    lists = {"tool": [1]}
    owner = ListsWatcher(OWNER, lambda _who, kind: lists.get(kind), ["resources"])
    assert owner.take_changes() == ["resources"]
    lists["tool"] = [1]  # again
    assert (owner.take_changes(), owner.take_changes()) == (["tools"], [])


async def test_each_caller_is_told_what_concerns_it():
    lists, (owner, ann) = {"ann": [], "owner": []}, (Listener(OWNER), Listener(ANN))

    def list_entries(who, kind):
        return lists[who.name] if kind == "tool" else None

    async with streams_to(owner, ann, list_entries=list_entries) as streams:
        lists["owner"] = ["new"]  # a tool that Ann does not see
        await streams.publish_changes()
        await streams.publish("resources", lambda caller: caller is ANN)
        lists |= {"ann": ["new"], "owner": ["new", "newer"]}
        await streams.publish_changes()
        assert await ann.told() == "ResourceListChanged"
        for client in (owner, owner, ann):
            assert await client.told() == "ToolListChanged"
    assert (owner.close(), ann.close()) == (0, 0)
    await streams.publish_changes()  # to nobody


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            ALL,
            dict.fromkeys(["toolsListChanged", "promptsListChanged", "resourcesListChanged"], True),
        ),
        (
            Subscriptions(tools_list_changed=True, prompts_list_changed=False),
            {"toolsListChanged": True},
        ),
        (Subscriptions(resource_subscriptions=[*URIS, *URIS]), {"resourceSubscriptions": URIS}),
        (Subscriptions(resource_subscriptions=[]), {}),
        (Subscriptions(), {}),
    ],
)
async def test_the_first_message_says_what_the_stream_will_tell(wanted, told):
    client = Listener()
    async with streams_to(client, wanted=wanted):
        assert client.message["params"]["notifications"] == told
    assert client.close() == 0


async def test_the_first_message_comes_first_whatever_happens_meanwhile():
    client, streams = Listener(), NotificationStreams()
    client.may_read = anyio.Event()
    async with anyio.create_task_group() as tasks:
        watcher = ListsWatcher(OWNER, lambda _who, _kind: None)
        tasks.start_soon(streams.serve, client.request, ALL, watcher)
        await anyio.wait_all_tasks_blocked()
        await streams.publish("tools", lambda _caller: True)
        client.may_read.set()
        assert await client.told() == "SubscriptionsAcknowledged"
        assert await client.told() == "ToolListChanged"
        streams.close()
    assert client.close() == 0


@pytest.mark.parametrize("request_id", [0, 7, "seven", ""])
async def test_each_message_names_the_request_that_opened_its_stream(request_id):
    client = Listener(request_id=request_id)  # which compares them
    async with streams_to(client) as streams:
        await streams.publish("prompts", lambda _caller: True)
        assert await client.told() == "PromptListChanged"
    assert client.close() == 0


async def test_nobody_is_told_what_it_has_not_asked_for():
    wanted = Subscriptions(prompts_list_changed=True, resource_subscriptions=URIS[:1])
    client, other = Listener(), Listener(ANN)
    async with streams_to(client, other, wanted=wanted) as streams:
        subscribed = streams.list_subscriptions()
        assert {(caller.name, uri) for caller, uri in subscribed} == {
            ("owner", URIS[0]),
            ("ann", URIS[0]),
        }
        for changed in ("tools", "resources"):
            await streams.publish(changed, lambda _caller: True)
        for uri in reversed(URIS):
            await streams.publish_update(uri, lambda caller: caller is OWNER)
        assert await client.told() == "ResourceUpdated"
        assert client.message["params"]["uri"] == URIS[0]
    assert (client.close(), other.close()) == (0, 0)
    assert streams.list_subscriptions() == []


async def test_a_stream_whose_client_does_not_read_ends_with_what_it_has(caplog):
    """The client then lists again, and misses nothing."""
    client, streams = Listener(), NotificationStreams()
    async with anyio.create_task_group() as tasks:
        watcher = ListsWatcher(OWNER, lambda _who, _kind: None)
        tasks.start_soon(streams.serve, client.request, ALL, watcher)
        assert await client.told() == "SubscriptionsAcknowledged"
        client.may_read = anyio.Event()
        for _ in range(2 * MAX_EVENTS):
            for stream in streams._streams:
                stream.publish("tools")
        assert sum("does not read" in text for text in caplog.messages) == 1
        client.may_read.set()  # nobody closes the stream: it has ended by itself
    for _ in range(MAX_EVENTS):
        assert await client.told() == "ToolListChanged"
    assert client.close() == 0
    assert not streams._streams


def listen_to(*uris, **unread):
    """Return the request that opens a stream."""
    wanted = {"toolsListChanged": True, "resourceSubscriptions": uris}
    return Request(1, "subscriptions/listen", {"notifications": wanted, **unread})


async def test_a_stream_that_the_bridge_closes_ends_with_a_result_that_names_it():
    catalog = Catalog()
    async with Links(catalog) as links:
        server, client = make_server(catalog, links), Listener(request_id="seven")
        request = Request("seven", "subscriptions/listen", listen_to(*URIS).params)
        async with anyio.create_task_group() as tasks:

            async def close():
                assert await client.told() == "SubscriptionsAcknowledged"
                await server.changes.publish_update(URIS[0], lambda _caller: True)
                server.close()

            tasks.start_soon(close)
            answer = await server.requests.answer(request, client.request)
        assert await client.told() == "ResourceUpdated"  # before the answer
    result = json.loads(b"".join(expand(answer.pieces)))["result"]
    validate_server_result("subscriptions/listen", VERSION, result)
    assert result["_meta"][SUBSCRIPTION_ID_KEY] == "seven"
    assert result["resultType"] == "complete"
    assert client.close() == 0


async def test_a_stream_that_its_client_cancels_leaves_nothing():
    catalog = Catalog()
    async with Links(catalog) as links:
        server, client = make_server(catalog, links), Listener()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.requests.answer, listen_to(*URIS), client.request)
            assert await client.told() == "SubscriptionsAcknowledged"
            assert {uri for _, uri in server.changes.list_subscriptions()} == {*URIS}
            tasks.cancel_scope.cancel()
        assert server.changes.list_subscriptions() == []
        assert server.open_streams.shares.explain_lack(OWNER) is None
    assert client.close() == 0


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
        async with Client(in_process(server)) as client:
            with anyio.fail_after(TIMEOUT):
                async with client.listen(tools_list_changed=True):
                    with pytest.raises(MCPError, match="Too many open streams: one caller can"):
                        async with client.listen(tools_list_changed=True):
                            pass
                while server.open_streams.shares.explain_lack(OWNER):
                    await anyio.lowlevel.checkpoint()
                async with client.listen(tools_list_changed=True):
                    pass


async def test_a_stream_takes_short_parameters_only():
    """They are kept as long as the stream is open, also those that nobody reads."""
    catalog = Catalog()
    async with Links(catalog) as links:
        server = make_server(catalog, links)
        async with Client(in_process(server)) as client:
            with anyio.fail_after(TIMEOUT):
                with pytest.raises(MCPError, match="16,384 bytes"):
                    async with client.listen(resource_subscriptions=["x:y"] * 10_000):
                        pass
                async with client.listen(resource_subscriptions=["x:y"] * 100):
                    pass
        listener = Listener()
        answer = await server.requests.answer(listen_to(later="x" * 20_000), listener.request)
        assert answer.error_code == INVALID_PARAMS
        assert listener.close() == 0


async def test_a_stream_that_is_opened_while_the_bridge_ends_ends_at_once():
    late = Listener()
    streams = NotificationStreams()
    streams.close()
    with anyio.fail_after(TIMEOUT):
        await streams.serve(late.request, ALL, ListsWatcher(OWNER, lambda _who, _kind: None))
    assert await late.told() == "SubscriptionsAcknowledged"
    assert late.close() == 0
