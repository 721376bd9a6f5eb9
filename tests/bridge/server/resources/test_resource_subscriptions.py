"""Who is told of which resource's changes, in the handshake era; with kernels: in e2e."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest
from linked_servers import make_server
from live import TIMEOUT

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.resources import resource_subscriptions
from mcp_notebook.bridge.server.resources.resource_subscriptions import (
    MAX_SUBSCRIPTIONS,
    MAX_URI,
)
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS
from mcp_notebook.protocol.messages import Request
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
ORDERS, PRICES = "data://orders", "data://prices"
GUEST = Caller(name="ann")


class Subscriber:
    """A client with a session that is told of resources."""

    def __init__(self, server, caller=OWNER):
        self._server = server
        self._caller = caller
        self.session = ClientSession(self._take)
        self._messages, self._told = anyio.create_memory_object_stream(10)

    async def _take(self, message):
        message = json.loads(message)
        assert message["method"] == "notifications/resources/updated"
        self._messages.send_nowait(message["params"]["uri"])

    async def ask(self, uri, method="resources/subscribe"):
        """Return the error code of the answer; None if it is a result."""
        request = ClientRequest(
            profile=read_profile("2025-11-25", None, {}, self.session),
            id=1,
            caller=self._caller,
            meta={},
            is_stdio=True,
            channel=None,
        )
        answer = await self._server.requests.answer(Request(1, method, {"uri": uri}), request)
        return answer.error_code

    async def told(self):
        return await self._told.receive()

    def close(self):
        """Return how much it has not read."""
        with self._messages, self._told:
            return self._told.statistics().current_buffer_used


@pytest.fixture
async def server():
    catalog = Catalog()
    async with Links(catalog) as links:
        yield make_server(catalog, links)


@asynccontextmanager
async def telling(server):
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.subscriptions.run)
            yield
            tasks.cancel_scope.cancel()


def offer(server, *uris):
    """Have a notebook declare these resources."""
    tools = [
        messages.ToolInfo(
            name=uri.removeprefix("data://"),
            input_schema={"type": "object"},
            kind="resource",
            uri=uri,
        )
        for uri in uris
    ]
    server.tools._catalog.set_kernel("1", notebook="sales", tools=tools)
    server.note_change()


async def test_a_client_is_told_of_what_it_subscribes_to_until_it_unsubscribes(server):
    client, other = Subscriber(server), Subscriber(server)
    for uri in (ORDERS, PRICES):
        assert await client.ask(uri) is None
    assert await other.ask(ORDERS) is None
    async with telling(server):
        offer(server, ORDERS)  # it has come
        assert (await client.told(), await other.told()) == (ORDERS, ORDERS)
        assert await client.ask(ORDERS, "resources/unsubscribe") is None
        assert await client.ask("data://unknown", "resources/unsubscribe") is None
        offer(server, PRICES)
        assert (await client.told(), await other.told()) == (PRICES, ORDERS)
    assert (client.close(), other.close()) == (0, 0)


async def test_a_client_that_has_left_leaves_no_subscription(server):
    client = Subscriber(server)
    assert await client.ask(ORDERS) is None
    client.session.end()
    assert await client.ask(PRICES) is None  # came before, and is answered late
    assert list(server.subscriptions._list_subscriptions()) == []
    assert client.close() == 0


async def test_the_subscriptions_of_a_caller_are_limited_in_all_its_sessions(server):
    client, other, guest = (Subscriber(server, caller) for caller in (OWNER, OWNER, GUEST))
    assert await client.ask("a" * (MAX_URI + 1)) == INVALID_PARAMS
    for number in range(MAX_SUBSCRIPTIONS - 1):
        assert await client.ask(f"data://{number}") is None
    assert await other.ask(ORDERS) is None
    for one in (client, other):
        assert await one.ask(PRICES) == INTERNAL_ERROR
    assert await other.ask(ORDERS) is None  # is there
    assert await guest.ask(PRICES) is None
    for _ in range(2):
        assert await client.ask("data://0", "resources/unsubscribe") is None
    assert await other.ask(PRICES) is None
    assert await client.ask("data://0") == INTERNAL_ERROR
    client.session.end()
    for number in range(MAX_SUBSCRIPTIONS - 2):
        assert await other.ask(f"data://{number}") is None
    assert await other.ask("data://more") == INTERNAL_ERROR
    assert (client.close(), other.close(), guest.close()) == (0, 0, 0)


async def test_subscriptions_that_have_ended_take_no_memory(server):
    subscriber = Subscriber(server)
    async with telling(server):
        for number in range(2 * resource_subscriptions.MIN_FORGOTTEN):
            assert await subscriber.ask(f"data://{number}") is None
            assert await subscriber.ask(f"data://{number}", "resources/unsubscribe") is None
        most = resource_subscriptions.MIN_FORGOTTEN
        while len(server.subscriptions._tools) > most:  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(0.01)
    subscriber.close()
