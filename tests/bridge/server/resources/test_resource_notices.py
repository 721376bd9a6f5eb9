"""Clients are told that resources have come or gone: once for each burst."""

from contextlib import asynccontextmanager

import anyio
import pytest
from judge import in_process
from kernel_stand_ins import keeping, peer
from linked_servers import make_server
from listing import KNOWN
from mcp import Client

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.bridge.server.resources.resource_notices import ResourceNotices
from mcp_notebook.content import ResourceLink, Result, Text
from mcp_notebook.wire import messages, resource_uris

pytestmark = pytest.mark.anyio

LIMIT = 20
DELAY = 0.1
CUT = Result([Text("a part"), ResourceLink("notebook://k/1", name="a.csv")])


ANN, BOB = (Caller(name=name, permissions=Permissions(tools=("top",))) for name in ("ann", "bob"))


class Heard(ChangeNotices):
    """Counts what is broadcast."""

    def __init__(self):
        super().__init__(lambda _caller, _kind: ())
        self.send, self.notices = anyio.create_memory_object_stream(100)

    async def broadcast(self, changed, is_for):
        await self.send.send(changed)
        self.told = {caller.name for caller in (OWNER, ANN, BOB) if is_for(caller)}
        await super().broadcast(changed, is_for)


@pytest.fixture
async def heard():
    changes = Heard()
    with changes.send, changes.notices:
        yield changes


@asynccontextmanager
async def running(notices):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notices.run)
        yield
        tasks.cancel_scope.cancel()


async def test_a_burst_of_results_is_one_notice_and_the_next_burst_another(heard):
    notices = ResourceNotices(heard, delay=DELAY, interval=0)
    async with running(notices):
        for _ in range(2):
            for _ in range(50):
                notices.note_result(OWNER, CUT)
            with anyio.fail_after(LIMIT):
                assert await heard.notices.receive() == "resources"
        assert heard.notices.statistics().current_buffer_used == 0


async def test_a_caller_is_notified_only_of_resources_that_it_sees(heard):
    notices = ResourceNotices(heard, delay=DELAY, interval=0)
    async with running(notices):
        with anyio.fail_after(LIMIT):
            notices.note_result(ANN, CUT)
            await heard.notices.receive()
            assert heard.told == {"owner", "ann"}
            notices.note_result(OWNER, CUT)
            await heard.notices.receive()
            assert heard.told == {"owner"}
            notices.note_kernel("k")
            await heard.notices.receive()
            assert heard.told == {"owner", "ann"}


async def test_after_a_notice_the_next_one_keeps_its_distance(heard):
    notices = ResourceNotices(heard, delay=DELAY, interval=10 * LIMIT)
    async with running(notices):
        notices.note_result(OWNER, CUT)
        with anyio.fail_after(LIMIT):
            await heard.notices.receive()
        notices.note_result(OWNER, CUT)
        with anyio.move_on_after(3 * DELAY) as waited:
            await heard.notices.receive()
        assert waited.cancelled_caught


async def test_a_result_without_resources_of_a_kernel_changes_nothing(heard):
    notices = ResourceNotices(heard, delay=DELAY, interval=0)
    async with running(notices):
        notices.note_result(OWNER, Result([Text("whole")]))
        notices.note_result(
            OWNER, Result([ResourceLink("https://example.com/a.csv", name="a.csv")])
        )
        with anyio.move_on_after(2 * DELAY) as waited:
            await heard.notices.receive()
        assert waited.cancelled_caught


@pytest.mark.parametrize("how", ["in a list", "in a result"])
async def test_a_kernel_that_leaves_takes_the_resources_with_it_that_clients_have_seen(home, how):
    catalog = Catalog()
    async with (
        peer(home, keeping("f")) as kernel,
        peer(home, keeping("g")) as without,
        Links(catalog) as links,
    ):
        server = make_server(catalog, links)
        notices = server.resource_notices
        uri = f"{resource_uris.make_prefix(kernel.record.id)}1/a.csv"
        kernel.resources = [messages.ResourceInfo(number=1, uri=uri, name="a.csv")]
        for each in (kernel, without):
            await links.connect(each.record)
        *_, its_link = links.open_links
        async with Client(in_process(server), mode="auto") as client:
            with anyio.fail_after(LIMIT):
                if how == "in a list":
                    assert len((await client.list_resources()).resources) == 1
                else:
                    notices.note_result(OWNER, Result([ResourceLink(uri, name="a.csv")]))
                    notices._change = anyio.Event()  # that one is not what is waited for
                async with client.listen(resources_list_changed=True) as changes, running(notices):
                    without.writer.close()
                    await its_link.end.wait()
                    assert not notices._change.is_set()
                    kernel.writer.close()
                    await anext(aiter(changes))
                    assert (await client.list_resources()).resources == []


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_clients_of_both_eras_are_told_and_were_promised_it(era):
    catalog = Catalog()
    server = make_server(catalog, Links(catalog))
    send, told = anyio.create_memory_object_stream(10)
    async with anyio.create_task_group() as tasks, send, told:
        tasks.start_soon(server.announce_changes)
        async with Client(
            in_process(server), mode=era, message_handler=send.send, client_info=KNOWN
        ) as client:
            assert client.server_capabilities.resources.list_changed
            assert client.server_capabilities.resources.subscribe
            with anyio.fail_after(LIMIT):
                if era == "legacy":
                    server.resource_notices.note_result(OWNER, CUT)
                    notice = await told.receive()
                    assert type(notice).__name__ == "ResourceListChangedNotification"
                else:
                    async with client.listen(resources_list_changed=True) as changes:
                        server.resource_notices.note_result(OWNER, CUT)
                        assert type(await anext(aiter(changes))).__name__ == "ResourcesListChanged"
        tasks.cancel_scope.cancel()
