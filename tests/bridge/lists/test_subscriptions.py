"""Who is told what on the streams of 2026-07-28; with clients: `test_change_notices`."""

from types import SimpleNamespace

import anyio
import mcp_types as types
import pytest
from live import TIMEOUT
from mcp.server.subscriptions import ResourcesListChanged, ToolsListChanged

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.lists.subscriptions import Subscriptions, ToolsWatcher

pytestmark = pytest.mark.anyio

ANN = Caller(name="ann", permissions=Permissions(tools=("sales.*",)))
PARAMS = types.SubscriptionsListenRequestParams(
    notifications=types.SubscriptionFilter(tools_list_changed=True, resources_list_changed=True)
)


class Client:
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


def test_all_changes_are_news_for_who_sees_everything_and_no_others_for_those_who_do_not():
    lists = {"owner": (1,), "ann": (1,)}
    owner, ann = (ToolsWatcher(each, lambda who: lists[who.name]) for each in (OWNER, ANN))
    assert (owner.take_change(), ann.take_change()) == (True, False)
    lists["ann"] = (1, 2)
    assert (ann.take_change(), ann.take_change()) == (True, False)


async def test_each_caller_is_told_what_concerns_it():
    lists = {"owner": (), "ann": ()}
    subscriptions, clients = Subscriptions(), {OWNER: Client(), ANN: Client()}
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for caller, client in clients.items():
                watcher = ToolsWatcher(caller, lambda who: lists[who.name])
                tasks.start_soon(subscriptions.listen, client, PARAMS, watcher)
                assert await client.told() == "SubscriptionsAcknowledged"
            await subscriptions.publish(ToolsListChanged())  # of tools that Ann does not see
            await subscriptions.publish(ResourcesListChanged(), lambda caller: caller is ANN)
            lists["ann"] = ("new",)
            await subscriptions.publish(ToolsListChanged())
            assert await clients[ANN].told() == "ResourceListChanged"
            for caller in (OWNER, OWNER, ANN):
                assert await clients[caller].told() == "ToolListChanged"
            subscriptions.close()
    assert [client.close() for client in clients.values()] == [0, 0]
    await subscriptions.publish(ToolsListChanged())  # to nobody
