"""Who is told of changes of the list of tools, and when."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest
from judge import in_process
from linked_servers import make_server
from listing import KNOWN
from mcp import Client

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.listing import change_notices
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
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
        Client(in_process(server), mode="auto") as client,
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
        Client(in_process(server), mode="auto") as modern,
        modern.listen(tools_list_changed=True) as changes,
        Client(in_process(server), mode="legacy", message_handler=send.send, client_info=KNOWN),
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
        Client(in_process(server), mode="legacy", message_handler=never, client_info=KNOWN),
        Client(in_process(server), mode="legacy", message_handler=send.send, client_info=KNOWN),
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
            in_process(server),
            mode="legacy",
            message_handler=send.send,
            sampling_callback=sample,
        ) as deaf,
        Client(in_process(server), mode="legacy", message_handler=send.send) as unnamed,
        Client(in_process(server), mode="auto") as asking,
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


def add_client(notices, send, caller=OWNER):
    """Have a client of the handshake era notified, to which messages are sent by this function."""
    profile = read_profile("2025-11-25", None, {}, session := ClientSession(send))
    notices.add_session(profile, caller)
    return session


async def test_a_client_whose_connection_is_full_keeps_no_notice_from_the_others():
    tools, tried, heard = [[]], [anyio.Event(), anyio.Event()], anyio.Event()
    notices = change_notices.ChangeNotices(
        lambda _caller, kind: tools[-1] if kind == "tool" else None
    )

    async def hear(message):
        assert json.loads(message)["method"] == "notifications/tools/list_changed"
        heard.set()

    def make_full(was_tried):
        async def send(_message):
            was_tried.set()
            await anyio.sleep_forever()

        return send

    for send in (make_full(tried[0]), hear, make_full(tried[1])):
        add_client(notices, send)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notices.run)
        with anyio.fail_after(LIMIT):
            for _ in range(MANY):
                tools.append([])
                notices.note_change()
                await heard.wait()
                heard = anyio.Event()
            for was_tried in tried:
                await was_tried.wait()
        tasks.cancel_scope.cancel()


async def test_a_caller_is_notified_only_of_changes_of_the_tools_that_it_sees():
    lists = {"ann": [], "owner": []}

    def list_entries(caller, kind):
        return lists[caller.name] if kind == "tool" else None

    notices = change_notices.ChangeNotices(list_entries)
    ann = Caller(name="ann", permissions=Permissions(tools=("sales.*",)))
    heard, (send, told) = [], anyio.create_memory_object_stream(10)
    for caller in (ann, OWNER):

        async def hear(_message, caller=caller):
            heard.append(caller.name)
            await send.send(caller.name)

        add_client(notices, hear, caller)
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


async def test_a_client_that_has_left_is_notified_no_more():
    tools, heard, told = [[]], [], anyio.Event()
    notices = change_notices.ChangeNotices(
        lambda _caller, kind: tools[-1] if kind == "tool" else None
    )

    async def hear(_message):
        told.set()

    async def hear_late(message):
        heard.append(message)

    add_client(notices, hear_late).end()
    add_client(notices, hear)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notices.run)
        tools.append([])
        notices.note_change()
        with anyio.fail_after(LIMIT):
            await told.wait()
        tasks.cancel_scope.cancel()
    assert heard == []
    session = ClientSession(hear_late)
    session.end()
    notices.add_session(read_profile("2025-11-25", None, {}, session), OWNER)
    assert session not in notices._listeners


async def test_an_answer_waits_for_no_list_while_the_tools_are_equal():
    notices = change_notices.ChangeNotices(
        lambda _caller, kind: [kind]  # as for a caller whose list is no longer cached
    )
    client = {"name": "claude-code", "version": "2"}
    profile = read_profile("2025-11-25", client, {}, None)
    request = ClientRequest(
        profile=profile, id=1, caller=OWNER, meta={}, is_stdio=True, channel=None
    )
    notices.note_list(request)
    with anyio.fail_after(change_notices.LIST_LIMIT / 2):
        await notices.notify_caller(request)
