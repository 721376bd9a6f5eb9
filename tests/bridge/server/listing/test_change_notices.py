"""Who is told of changes of the list of tools, and when."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from linked_servers import make_server
from listing import KNOWN
from mcp import Client
from mcp.server.connection import Connection

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY, Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.listing import change_notices
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

LIMIT = 20
MANY = 25
"""Changes that take longer than `LIMIT` if each waits for a client that takes nothing."""


@pytest.fixture
async def server():
    catalog = Catalog()
    return make_server(catalog, Links(catalog))


def make_change(server):
    """Offer one more tool."""
    catalog = server.tools._catalog
    names = [*(entry.name for entry in catalog.entries()), f"tool{len(catalog.entries())}"]
    tools = [messages.ToolInfo(name=name, input_schema={"type": "object"}) for name in names]
    assert catalog.set_kernel("1", notebook="sales", tools=tools)
    server.note_change()


@asynccontextmanager
async def announcing(server):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.announce_changes)
        yield tasks
        tasks.cancel_scope.cancel()


async def test_a_burst_of_changes_is_one_notice(server):
    async with (
        Client(server.mcp, mode="auto") as client,
        client.listen(tools_list_changed=True) as changes,
        announcing(server),
    ):
        for _ in range(20):
            make_change(server)
        with anyio.fail_after(LIMIT):
            await anext(aiter(changes))
        with anyio.move_on_after(3 * change_notices.CHANGE_DELAY) as waited:
            await anext(aiter(changes))
        assert waited.cancelled_caught


async def test_what_came_before_the_first_list_is_no_news(server):
    first, (send, told) = anyio.Event(), anyio.create_memory_object_stream(10)
    async with (
        send,
        told,
        anyio.create_task_group() as tasks,
        Client(server.mcp, mode="auto") as modern,
        modern.listen(tools_list_changed=True) as changes,
        Client(server.mcp, mode="legacy", message_handler=send.send, client_info=KNOWN),
    ):
        tasks.start_soon(server.announce_changes, first.wait)
        make_change(server)
        first.set()
        with anyio.move_on_after(3 * change_notices.CHANGE_DELAY) as waited:
            await anext(aiter(changes))
        assert waited.cancelled_caught
        assert told.statistics().current_buffer_used == 0
        make_change(server)
        with anyio.fail_after(LIMIT):
            await anext(aiter(changes))
            await told.receive()
        tasks.cancel_scope.cancel()


async def test_a_client_that_takes_no_notice_keeps_none_from_the_others(server):
    deaf, (send, told) = anyio.Event(), anyio.create_memory_object_stream(10)

    async def never(_message):
        deaf.set()
        await anyio.sleep_forever()

    async with (
        announcing(server),
        send,
        told,
        Client(server.mcp, mode="legacy", message_handler=never, client_info=KNOWN),
        Client(server.mcp, mode="legacy", message_handler=send.send, client_info=KNOWN),
    ):
        for _ in range(5):
            make_change(server)
            with anyio.fail_after(LIMIT):
                notice = await told.receive()
            assert type(notice).__name__ == "ToolListChangedNotification"
        assert deaf.is_set()


async def test_a_program_that_may_hang_is_not_told_unless_it_asks(server):
    """Semantic Kernel reads nothing while it lists the tools. It goes by the name of the SDK, as
    most programs do, which are told."""

    async def sample(_context, _params):
        raise AssertionError

    send, told = anyio.create_memory_object_stream(10)
    async with (
        announcing(server),
        send,
        told,
        Client(
            server.mcp, mode="legacy", message_handler=send.send, sampling_callback=sample
        ) as deaf,
        Client(server.mcp, mode="legacy", message_handler=send.send) as unnamed,
        Client(server.mcp, mode="auto") as asking,
        asking.listen(tools_list_changed=True) as changes,
    ):
        make_change(server)
        with anyio.fail_after(LIMIT):
            await anext(aiter(changes))
            await told.receive()
            await deaf.list_tools()  # whatever came before its answer has been handled
        assert told.statistics().current_buffer_used == 0
        for client, is_told in ((deaf, False), (unnamed, True), (asking, True)):
            declared = client.server_capabilities
            assert {
                declared.tools.list_changed,
                declared.prompts.list_changed,
                declared.resources.list_changed,
            } == {is_told}


class Deaf:
    """The session of a client that does not read: nothing can be sent to it."""

    def __init__(self):
        self.was_tried = anyio.Event()
        self._connection = Connection(self, protocol_version="2025-11-25")
        self.client_params = self.client_capabilities = None

    async def notify(self, method, _params, _options):
        assert method == "notifications/tools/list_changed"
        self.was_tried.set()
        await anyio.sleep_forever()


def make_context(session, request):
    return SimpleNamespace(
        session=session,
        request=request,
        protocol_version="2025-11-25",
        request_id=None,
        meta=None,
    )


async def test_a_client_whose_connection_is_full_keeps_no_notice_from_the_others():
    tools = [[]]
    heard = anyio.Event()
    notices = change_notices.ChangeNotices(
        lambda _caller, kind: tools[-1] if kind == "tool" else None, OWNER
    )
    hearing, deaf = Deaf(), [Deaf(), Deaf()]

    async def hear(*_):
        heard.set()

    hearing.notify = hear
    for session in (deaf[0], hearing, deaf[1]):
        ctx = make_context(session, None)
        await notices.add_client(ctx, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notices.run)
        with anyio.fail_after(LIMIT):
            for _ in range(MANY):
                tools.append([])
                notices.note_change()
                await heard.wait()
                heard = anyio.Event()
            await deaf[0].was_tried.wait()
            await deaf[1].was_tried.wait()
        tasks.cancel_scope.cancel()


async def test_a_caller_is_notified_only_of_changes_of_the_tools_that_it_sees():
    lists = {"ann": [], "owner": []}

    def list_entries(caller, kind):
        return lists[caller.name] if kind == "tool" else None

    notices = change_notices.ChangeNotices(list_entries, OWNER)
    ann = Caller(name="ann", permissions=Permissions(tools=("sales.*",)))
    heard, (send, told) = [], anyio.create_memory_object_stream(10)

    def session_of(caller):
        session = Deaf()

        async def hear(*_):
            heard.append(caller.name)
            await send.send(caller.name)

        session.notify = hear
        request = SimpleNamespace(scope={SCOPE_KEY: caller})
        return make_context(session, request)

    for caller in (ann, OWNER):
        await notices.add_client(session_of(caller), None)
    async with anyio.create_task_group() as tasks, send, told:
        tasks.start_soon(notices.run)
        with anyio.fail_after(LIMIT):
            lists["owner"] = ["other"]
            notices.note_change()
            assert await told.receive() == "owner"
            lists |= {"ann": ["new"], "owner": ["other", "new"]}
            notices.note_change()
            assert {await told.receive(), await told.receive()} == {"ann", "owner"}
        tasks.cancel_scope.cancel()
    assert sorted(heard) == ["ann", "owner", "owner"]
