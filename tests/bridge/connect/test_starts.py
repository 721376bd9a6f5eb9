"""What is started for a client on a JupyterHub (its REST API on loopback), and what is refused."""

import json
import re
import socket
import threading
from contextlib import contextmanager

import anyio
import pytest
from bridges import TOKEN
from live import TIMEOUT
from web_stand_ins import discovered, web_server

from mcp_notebook.bridge.connect.addresses import HubServer, read_address
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.hub_server import start_server
from mcp_notebook.bridge.connect.remote import open_http
from mcp_notebook.bridge.connect.remote_notebook import open_notebook
from mcp_notebook.bridge.connect.starter import Starter
from mcp_notebook.errors import NotebookNotOpen, RemoteError, ServerStopped

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]
JSON, EVENTS = {"Content-Type": "application/json"}, {"Content-Type": "text/event-stream"}
ADA = Credentials(TOKEN, "the file ~/hub.token")
RUNNING = (400, JSON, json.dumps({"status": 400, "message": "ada is already running"}))
READY = {"progress": 100, "ready": True, "message": "Server ready at /user/ada/"}


def events(*items):
    return 200, EVENTS, "".join(f"data: {json.dumps(item)}\n\n" for item in items)


class Hub:
    """A JupyterHub with one user's server."""

    def __init__(self):
        self.api = {"GET /hub/api/user": (200, JSON, json.dumps({"name": "ada"}))}
        """The answers of its REST API; lists are used up from their start."""
        self.runs = False
        self.asked = []
        self.opened = []
        self.notebooks = events({"step": "Code cell 1 of 1 of rain.ipynb ..."}, {"done": True})
        self.is_open = False
        self.lives = threading.Event()
        """Not set: it does not answer who wants a notebook opened."""
        self.lives.set()
        self.proxy = None
        """What the proxy answers for a server that does not run; None: it asks the JupyterHub."""

    def answer(self, request):
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        if request.path.startswith("/hub/api/"):
            self.asked.append(f"{request.method} {request.path}")
            answer = self.api.get(self.asked[-1], (404, JSON, "{}"))
            answer = answer.pop(0) if isinstance(answer, list) else answer
            self.runs = self.runs or answer[0] == 201 or "ready" in answer[2]
            return answer
        if not self.runs:
            return self.proxy or _refuse(request)
        if request.path.endswith("/mcp-notebook/api/notebooks"):
            self.opened.append(json.loads(request.body))
            self.is_open = self.is_open or self.opened[-1]["run"]
            self.lives.wait()
            return self.notebooks
        name = request.path.rpartition("/")[2]
        if name == "snow" or (name == "rain.ipynb" and not self.is_open):
            return 404, JSON, json.dumps({"error": f"No open notebook is called {name!r}."})
        return discovered("mcp-notebook")


def _refuse(request):
    """Answer as JupyterHub 5 does for a server that does not run."""
    if request.method == "POST":
        return 403, {"Content-Type": "text/html"}, "<html>"
    return 302, {"Location": f"/hub{request.path}"}, ""


@pytest.fixture
def hub():
    hub = Hub()
    with web_server(hub.answer) as hub.url:
        yield hub


async def start(hub, user="ada", name="", **limits):
    told, server = [], HubServer(hub.url, user, name)
    async with open_http() as http:
        await start_server(http, server, ADA, told.append, look_interval=0.01, **limits)
    return told


async def find(hub, page="user/ada/lab/tree/rain.ipynb", *, run=True, home=None):
    told = []
    address = read_address(f"{hub.url}/{page}")
    async with open_http() as http:
        found = Starter(http, address, ADA, home=home, run=run, insecure=False)
        return (await found.find(told.append)).url, told


@contextmanager
def refused(reason, kind=RemoteError):
    with pytest.raises(kind) as told:
        yield
    assert re.search(reason, str(told.value)), str(told.value)
    assert TOKEN not in str(told.value)


# -- the JupyterHub's server -----------------------------------------------------------------------

FAILED = {"progress": 100, "failed": True, "message": "Spawn failed: No room."}
SERVER = "POST /hub/api/users/ada/server"
PROGRESS = "GET /hub/api/users/ada/server/progress"


async def test_a_server_is_started_and_its_progress_told(hub):
    hub.api |= {
        SERVER: (202, {}, ""),
        PROGRESS: events(
            {"progress": 0, "message": "Server requested"},
            {"progress": 50, "message": "Spawning server..."},
            {"progress": 50, "message": "Spawning server..."},
            READY,
        ),
    }
    told = await start(hub)
    assert told[1:] == ["Server requested", "Spawning server..."]
    assert hub.asked == [SERVER, PROGRESS]


@pytest.mark.parametrize("first", [[], [(202, {}, "")] * 2])
async def test_a_server_whose_progress_the_token_may_not_see_is_waited_for(hub, first):
    hub.api |= {SERVER: [*first, RUNNING], PROGRESS: (403, JSON, "{}")}
    await start(hub)
    assert hub.asked.count(SERVER) == len(first) + 1


async def test_a_server_that_is_just_stopping_is_started_when_it_has_stopped(hub):
    stopping = (400, JSON, json.dumps({"message": "ada is pending stop"}))
    hub.api |= {SERVER: [stopping, (201, {}, "")], PROGRESS: (400, JSON, "{}")}
    await start(hub)


@pytest.mark.parametrize(
    ("api", "reason"),
    [
        (
            {SERVER: (202, {}, ""), PROGRESS: events(FAILED)},
            r"start failed: Spawn failed: No room.*/hub/home",
        ),
        ({SERVER: (500, JSON, "{}"), PROGRESS: events(FAILED)}, "Spawn failed: No room"),
        ({SERVER: (500, JSON, '{"message": "Oops"}')}, r"status 500: Oops"),
        ({SERVER: (429, {}, "<html>")}, r"status 429: it gives no reason"),
        ({SERVER: (403, JSON, "{}")}, r"may not start servers.*servers!user=ada"),
        (
            {SERVER: (404, JSON, "{}"), "GET /hub/api/user": (200, JSON, '{"name": "bob"}')},
            r"server of 'ada', and the token from the file ~/hub.token is that of 'bob'",
        ),
        (
            {SERVER: (403, JSON, "{}"), "GET /hub/api/user": (403, JSON, "{}")},
            r"does not accept the token from the file ~/hub.token.*/hub/token",
        ),
        ({SERVER: (200, JSON, "[1]")}, r"status 200"),
    ],
)  # fmt: skip
async def test_a_server_that_is_not_started_is_told_with_the_reason(hub, api, reason):
    hub.api |= api
    with refused(reason):
        await start(hub)


async def test_a_server_that_takes_too_long_is_told(hub):
    hub.api |= {SERVER: (202, {}, ""), PROGRESS: events({"message": "Still pulling"})}
    with refused(r"did not start within 0.2 seconds.*/hub/home"):
        await start(hub, start_limit=0.2)


# -- all that an address names ---------------------------------------------------------------------


async def test_a_server_and_its_notebook_are_started_and_found(hub):
    hub.api |= {SERVER: (201, {}, "")}
    url, told = await find(hub)
    assert url == f"{hub.url}/user/ada/mcp-notebook/rain.ipynb"
    assert hub.opened == [{"path": "rain.ipynb", "run": True}]
    assert told == [
        f"Starting the Jupyter server of ada on {hub.url} ...",
        "Code cell 1 of 1 of rain.ipynb ...",
    ]


async def test_what_runs_is_not_started(hub):
    hub.runs = hub.is_open = True
    url, told = await find(hub)
    assert url.endswith("/user/ada/mcp-notebook/rain.ipynb")
    assert not hub.asked
    assert not hub.opened
    assert not told


async def test_no_notebook_is_opened_that_the_address_does_not_name(hub):
    hub.api |= {SERVER: (201, {}, "")}
    url, _ = await find(hub, "user/ada/lab", run=False)
    assert url == f"{hub.url}/user/ada/mcp-notebook"
    assert not hub.opened


async def test_a_name_that_is_not_the_path_of_a_notebook_opens_none(hub):
    hub.runs = True
    with refused("No open notebook is called 'snow'", NotebookNotOpen):
        await find(hub, "user/ada/mcp-notebook/snow", run=False)
    assert not hub.opened


async def test_without_run_the_notebook_gets_a_kernel_and_it_is_said_how_to_run_it(hub):
    hub.runs = True
    hub.notebooks = events({"done": True})
    with refused("rain.ipynb is open at .*no tools yet.*add --run", NotebookNotOpen):
        await find(hub, run=False)
    assert hub.opened == [{"path": "rain.ipynb", "run": False}]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (events({"error": "Code cell 2 failed."}), "^Code cell 2 failed"),
        (events({"step": "Code cell 1 ..."}), "ended while rain.ipynb was being opened"),
        ((404, {}, "<html>"), "too old.*Upgrade"),
        ((403, JSON, "{}"), "does not accept the token"),
    ],
)
async def test_a_notebook_that_is_not_opened_is_told_with_the_reason(hub, reply, reason):
    hub.runs = True
    hub.notebooks = reply
    with refused(reason, NotebookNotOpen):
        await find(hub)


async def test_a_server_that_has_gone_while_it_opens_a_notebook_is_told(hub):
    """The proxy of a JupyterHub keeps its client's connection open."""
    hub.runs = True
    hub.lives.clear()
    limits = {"run": True, "silence_limit": 0.1}
    try:
        with anyio.fail_after(TIMEOUT), refused("sends nothing any more.*try again"):
            async with open_http() as http:
                await open_notebook(http, f"{hub.url}/user/ada", "a.ipynb", ADA, print, **limits)
    finally:
        hub.lives.set()


async def test_an_address_that_is_not_reached_starts_nothing(hub):
    told = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = read_address(f"http://127.0.0.1:{port}/user/ada/lab")
    async with open_http() as http:
        found = Starter(http, address, ADA, home=None, run=False, insecure=False)
        with refused("cannot be reached: the connection was refused"):
            await found.find(told.append)
    assert not told


async def test_a_server_that_may_not_be_started_is_told_with_how_to_start_it(hub):
    hub.api |= {SERVER: (403, JSON, "{}")}
    with refused(r"is not running\. Start it in the browser.*may not start servers", ServerStopped):
        await find(hub)
    assert hub.asked.count(SERVER) == 1


@pytest.mark.parametrize("page", ["user/ada/lab", "user/ada/mcp-notebook/rain", "mcp"])
async def test_run_needs_a_notebook(hub, page):
    with refused("--run needs the address of a notebook"):
        await find(hub, page)
    assert not hub.asked
