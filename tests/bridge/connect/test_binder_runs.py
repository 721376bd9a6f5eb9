"""A repository on Binder from one line to a tool: a BinderHub's API before real Jupyter Servers."""

import json
from contextlib import ExitStack

import anyio
import anyio.to_thread
import pytest
from clients import text_of
from forked_command import list_words
from jupyter_servers import TOKEN, jupyter_server
from listing import KNOWN, list_tools
from mcp import Client, StdioServerParameters
from notebook_files import write_notebook
from web_stand_ins import web_server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CELLS = (
    "%load_ext mcp_notebook",
    "with open('runs.txt', 'a') as file:\n    print('run', file=file)",
    '%%mcp_tool\ndef double(n: int) -> int:\n    "Double."\n    return 2 * n',
)


class Binder:
    """Answers ``GET /build/...`` as BinderHub does, with a new Jupyter Server each time."""

    def __init__(self, folder, stack):
        self.folder = folder
        self.servers = []
        self._stack = stack

    def answer(self, _request):
        home = self.folder / f"server-{len(self.servers)}"
        home.mkdir()
        write_notebook(home / "rain.ipynb", *CELLS)
        server = self._stack.enter_context(jupyter_server(home))
        self.servers.append(server)
        events = [
            {"phase": "building", "message": "Step 1/2"},
            {"phase": "launching", "message": "Launching server...\n"},
            {"phase": "ready", "message": "Ready", "url": server.url, "token": TOKEN},
        ]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return 200, {"Content-Type": "text/event-stream"}, body


@pytest.fixture
def binder(home):
    with ExitStack() as stack:
        binder = Binder(home, stack)
        with web_server(binder.answer) as binder.url:
            yield binder


def client(home, binder):
    """Return a client that starts the command as its settings say."""
    link = f"{binder.url}/v2/gh/ada/rain/main?labpath=rain.ipynb"
    program, *words = list_words("connect", link, "--run")
    server = StdioServerParameters(command=program, args=words, env={"HOME": str(home)})
    return Client(server, client_info=KNOWN)


async def test_two_clients_at_once_get_one_server_and_one_run_and_the_next_call_another_server(
    home, binder
):
    answers = []

    async def use():
        async with client(home, binder) as assistant:
            while not await list_tools(assistant):  # noqa: ASYNC110 - another client runs it
                await anyio.sleep(0.1)
            answers.append(text_of(await assistant.call_tool("double", {"n": 4})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        tasks.start_soon(use)
    assert answers == ["8", "8"]
    (first,) = binder.servers
    assert (first.home / "runs.txt").read_text() == "run\n"
    assert len(first.states()) == 1


async def test_a_server_that_binder_ends_is_replaced_by_the_next_call(home, binder):
    async with client(home, binder) as assistant:
        assert text_of(await assistant.call_tool("double", {"n": 4})) == "8"
        (first,) = binder.servers

        def gone(_request):  # what BinderHub's proxy answers for a server that has ended
            return 404, {"Content-Type": "text/html"}, "<html>"

        port = int(first.url.rstrip("/").rpartition(":")[2])
        await anyio.to_thread.run_sync(first.process.terminate)
        await anyio.to_thread.run_sync(first.process.wait)
        with web_server(gone, port=port):
            assert text_of(await assistant.call_tool("double", {"n": 5})) == "10"
    assert len(binder.servers) == 2
    assert (binder.servers[1].home / "runs.txt").read_text() == "run\n"
