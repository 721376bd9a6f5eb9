"""Which clients a bridge has, as it tells kernels: asked by clients in the same process."""

from contextlib import asynccontextmanager

import anyio
import pytest
from judge import in_process
from kernel_stand_ins import peer, welcome
from linked_servers import make_server
from live import TIMEOUT
from mcp import Client
from mcp_types import Implementation
from watched_catalog import WatchedCatalog

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.sessions import connected_clients
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile, read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.bridge.server.sessions.connected_clients import ConnectedClients
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

LIMIT = 20
EDITOR = Implementation(name="editor", version="1.2")


class Told:
    """Takes what kernels are told."""

    def __init__(self):
        self.send, self._receive = anyio.create_memory_object_stream(100)

    async def next(self):
        """Return the next list, as names with numbers."""
        with anyio.fail_after(LIMIT):
            clients = await self._receive.receive()
        return {f"{client.name} {client.version}": client.number for client in clients}

    def close(self):
        self.send.close()
        self._receive.close()


@pytest.fixture
async def told():
    told = Told()
    yield told
    told.close()


@pytest.fixture
async def server(told, monkeypatch):
    server = make_server(Catalog(), Links(Catalog()))
    monkeypatch.setattr(server.clients, "_on_change", told.send.send_nowait)
    return server


@asynccontextmanager
async def running(run):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield
        tasks.cancel_scope.cancel()


async def test_a_client_with_a_session_is_connected_until_it_leaves(server, told):
    async with running(server.announce_changes):
        async with Client(in_process(server), mode="legacy", client_info=EDITOR):
            assert await told.next() == {"editor 1.2": 1}
            async with Client(in_process(server), mode="legacy", client_info=EDITOR):
                assert await told.next() == {"editor 1.2": 2}
            assert await told.next() == {"editor 1.2": 1}
        assert await told.next() == {}


async def test_a_client_without_a_session_is_connected_from_its_first_request(server, told):
    async with (
        running(server.announce_changes),
        Client(in_process(server), mode="auto", client_info=EDITOR) as client,
    ):
        await client.list_tools()
        assert await told.next() == {"editor 1.2": 1}


def request_of(name, caller=OWNER):
    """Return a request over HTTP in 2026-07-28."""
    return ClientRequest(
        profile=ClientProfile("2026-07-28", messages.ClientInfo(name=name, version="1")),
        id=1,
        caller=caller,
        meta={},
        is_stdio=False,
        channel=None,
    )


def ask(clients, name, caller=OWNER):
    """Have a program make a request."""
    with clients.visit(request_of(name, caller)):
        pass


@pytest.mark.slow
async def test_over_http_it_is_forgotten_some_time_after_its_last_request(told):
    clients = ConnectedClients(told.send.send_nowait, remembered=0.5)
    async with running(clients.run):
        with clients.visit(request_of("long")):
            ask(clients, "short")
            ask(clients, "short", Caller(name="ann"))
            # As many as there are callers; the one whose request runs stays.
            assert await told.next() == {"short 1": 2, "long 1": 1}
            assert await told.next() == {"long 1": 1}
        assert await told.next() == {}


async def test_programs_beyond_the_most_are_not_told(told):
    clients = ConnectedClients(told.send.send_nowait)
    for number in range(connected_clients.MAX_PROGRAMS + 5):
        ask(clients, f"program-{number}")
    async with running(clients.run):
        assert len(await told.next()) == connected_clients.MAX_PROGRAMS


async def test_a_caller_that_makes_up_programs_is_remembered_with_few_of_them(told):
    clients = ConnectedClients(told.send.send_nowait)
    for number in range(10 * connected_clients.MAX_PROGRAMS):
        ask(clients, f"program-{number}", Caller(name="ann"))
    assert len(clients._visitors) == connected_clients.MAX_PROGRAMS + 1
    ask(clients, "editor")
    assert len(clients._visitors) == connected_clients.MAX_PROGRAMS + 2


async def test_a_session_that_has_ended_already_does_not_count(told):
    """Its last message may be taken after it was ended."""
    clients, session = ConnectedClients(told.send.send_nowait), ClientSession(None)
    session.end()
    clients.add_session(read_profile("2025-11-25", {"name": "late", "version": "1"}, {}, session))
    async with running(clients.run):
        ask(clients, "editor")
        assert await told.next() == {"editor 1": 1}


async def test_kernels_hear_which_clients_there_are_those_to_come_and_the_present_ones(home):
    clients = [messages.ClientCount(name="editor", version="1", number=2)]
    knows = welcome()
    catalog = WatchedCatalog()
    async with (
        peer(home, knows) as first,
        peer(home, knows) as second,
        Links(catalog) as links,
    ):
        await links.connect(first.record)
        server = make_server(catalog, links)
        server._note_clients(clients)
        await links.connect(second.record)
        with anyio.fail_after(TIMEOUT):
            await first.was_told.wait()
            await second.was_told.wait()
        assert first.heard[1:] == second.heard[1:] == [messages.Clients(clients=clients)]


async def test_a_kernel_is_told_when_the_names_change_and_only_then(home):
    answer = welcome("rain")
    catalog = Catalog()
    async with (
        peer(home, answer) as sales,
        peer(home, answer, name="stock") as stock,
        Links(catalog) as links,
    ):
        make_server(catalog, links)
        await links.connect(sales.record)
        await links.connect(stock.record)
        await sales.names_came.wait()
        await stock.names_came.wait()
        for kernel, name in ((sales, "sales_rain"), (stock, "stock_rain")):
            (said,) = [said for said in kernel.heard if said.type == "clients"]
            assert [(listed.tool, listed.name) for listed in said.names] == [("rain", name)]
