"""Repositories started on a BinderHub: a local server that speaks its build API."""

import json
import stat
import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import anyio
import pytest
from bridges import TOKEN
from live import TIMEOUT
from web_stand_ins import discovered, web_server

from mcp_notebook.bridge.connect.addresses import read_address
from mcp_notebook.bridge.connect.binder import LaunchFile, find_launch, launch_repository
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.messages import make_message
from mcp_notebook.bridge.connect.remote import ask, open_http
from mcp_notebook.errors import RemoteError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]
BUILD = [  # as binderhub/builder.py and repo2docker write them
    {"phase": "waiting", "message": "Waiting for build to start...\n"},
    {"phase": "fetching", "message": "Picked Git content provider.\n"},
    {"phase": "building", "message": "Step 1/50 : FROM docker.io/library/buildpack-deps\n"},
    {"phase": "building", "message": "Step 2/50 : ENV DEBIAN_FRONTEND=noninteractive\n"},
    {"phase": "built", "message": "Built image, launching...\n", "imageName": "i:1"},
    {"phase": "launching", "message": "Launching server...\n"},
]


class BinderHub:
    """Answers GET /build/... with events, as `binderhub.builder.BuildHandler` does."""

    def __init__(self):
        self.events = []
        self.asked = []
        self.tokens = []
        self.lives = threading.Event()
        """Not set: it does not answer."""
        self.lives.set()


@pytest.fixture
def hub():
    """A BinderHub on loopback."""
    hub = BinderHub()

    def answer(request):
        hub.asked.append(request.path)
        hub.tokens.append(request.headers.get("Authorization"))
        hub.lives.wait()
        events = hub.events
        if "text/event-stream" not in request.headers["Accept"].split(";"):
            events = [{"phase": "failed", "status_code": 400, "message": "Missing Accept\n"}]
        body = "".join(f"data: {json.dumps(event)}\n\n:keepalive\n\n" for event in events)
        return 200, {"Content-Type": "text/event-stream"}, body

    with web_server(answer) as hub.url:
        yield hub


def ready(url):
    server = url.removesuffix("mcp-notebook")
    event = {"phase": "ready", "message": f"server running at {server}\n", "image": "i:1"}
    return [
        *BUILD,
        event | {"repo_url": "https://github.com/ada/rain", "url": server, "token": TOKEN},
    ]


@contextmanager
def mortal_server():
    """Run an endpoint whose answers the test changes, as those of a Binder that has ended."""
    server = SimpleNamespace(status=200, body=discovered("mcp-notebook")[2])

    def answer(_request):
        return server.status, {"Content-Type": "application/json"}, server.body

    with web_server(answer) as url:
        yield url, server


@pytest.fixture
def launched():
    """The endpoint of a Jupyter server that a BinderHub has started."""
    with web_server(lambda _request: discovered("mcp-notebook")) as url:
        yield f"{url}/user/rain-x/mcp-notebook"


@contextmanager
def refused(reason):
    with pytest.raises(RemoteError, match=reason) as told:
        yield
    assert TOKEN not in str(told.value)


async def find(home, hub, *, http=None, path="gh/ada/rain/main?labpath=a%20b.ipynb"):
    repository = read_address(f"{hub.url}/v2/{path}")
    file = LaunchFile(home, repository)
    async with nullcontext(http) if http else open_http() as opened:
        return await find_launch(opened, repository, Credentials(), file), file


async def test_a_repository_is_started_with_its_progress_and_kept_while_it_lives(
    home, hub, launched, capsys
):
    hub.events = ready(launched)
    remote, file = await find(home, hub)
    assert remote.url == launched
    assert hub.asked == ["/build/gh/ada/rain/main"]
    said = capsys.readouterr().err.splitlines()
    assert said[1:-1] == [
        "waiting: Waiting for build to start...",
        "fetching ...",
        "building ...",
        "built: Built image, launching...",
        "launching: Launching server...",
    ]
    assert str(file.link_file) in said[-1]
    assert TOKEN not in "".join(said)
    link = launched.removesuffix("mcp-notebook") + f"lab/tree/a%20b.ipynb?token={TOKEN}\n"
    assert file.link_file.read_text("utf-8") == link
    assert stat.S_IMODE(file.link_file.stat().st_mode) == 0o600
    again, _ = await find(home, hub)
    assert again.url == launched
    assert len(hub.asked) == 1


@pytest.mark.parametrize("status", [302, 401, 403, 404, 424])
async def test_one_that_has_ended_is_started_again(home, hub, launched, capsys, status):
    with mortal_server() as (url, server):
        hub.events = ready(f"{url}/user/rain-x/mcp-notebook")
        await find(home, hub)
        server.status, server.body = status, "<html>"  # as Binder's proxy answers for it
        hub.events = ready(launched)
        remote, _ = await find(home, hub)
        assert remote.url == launched
    said = capsys.readouterr().err
    assert "The previous server on Binder has ended." in said
    assert len(hub.asked) == 2


HICCUPS = [(status, "<html>") for status in (200, 400, 408, 418, 429, 500, 502, 503, 504, 520)]
HICCUPS += [(None, ""), (200, ""), (200, '{"version": "2.17.0"}'), (404, '{"error": "Not open."}')]


@pytest.mark.parametrize(("status", "body"), HICCUPS)
@pytest.mark.parametrize("is_new", [True, False])
async def test_one_that_answers_oddly_for_a_while_is_not_given_up(home, hub, status, body, is_new):
    """Neither one that has just been started nor one that has been used: it may have results."""
    with mortal_server() as (url, server):
        hub.events = ready(f"{url}/user/rain-x/mcp-notebook")
        good = server.status, server.body
        if not is_new:
            await find(home, hub)
        for _ in range(2):
            server.status, server.body = status, body
            with pytest.raises(RemoteError):
                await find(home, hub)
        server.status, server.body = good
        remote, _ = await find(home, hub)
        assert remote.url == f"{url}/user/rain-x/mcp-notebook"
    assert len(hub.asked) == 1


async def test_a_client_is_told_that_a_server_on_binder_has_ended(home, hub):
    with mortal_server() as (url, server):
        hub.events = ready(f"{url}/user/rain-x/mcp-notebook")
        async with open_http() as http:
            remote, _ = await find(home, hub, http=http)
            server.status, server.body = 403, "<html>"
            with refused("has ended.*The next request starts a new one"):
                await ask(remote, make_message({"id": 1, "method": "tools/list"}), {})


async def test_two_commands_at_once_start_one_server(home, hub, launched):
    async with anyio.create_task_group() as tasks:
        hub.events = ready(launched)
        for _ in range(2):
            tasks.start_soon(find, home, hub)
    assert len(hub.asked) == 1


async def test_a_command_that_waits_for_anothers_start_says_so_and_then_uses_its_server(
    home, hub, launched
):
    steps, began, end = [], anyio.Event(), anyio.Event()

    def tell(text):
        steps.append(text)
        began.set()

    async with open_http() as http, anyio.create_task_group() as tasks:
        hub.events = ready(launched)
        _, file = await find(home, hub)

        async def hold():
            async with file.hold(print):
                tasks.start_soon(wait)
                await end.wait()

        async def wait():
            repository = read_address(f"{hub.url}/v2/gh/ada/rain/main?labpath=a%20b.ipynb")
            remote = await find_launch(http, repository, Credentials(), file, tell)
            assert remote.url == launched

        tasks.start_soon(hold)
        with anyio.fail_after(TIMEOUT):
            await began.wait()
        end.set()
    (step,) = steps
    assert step.startswith("Another process is starting gh/ada/rain/main on http://127.0.0.1")


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"silence_limit": 0.1}, "sends nothing any more"),
        ({"launch_limit": 0.36}, r"has not started .*within 0\.0001 hours"),
    ],
)
async def test_a_binderhub_that_never_answers_is_told(hub, limit, reason):
    hub.lives.clear()
    repository = read_address(f"{hub.url}/v2/gh/ada/rain/main")
    try:
        with anyio.fail_after(TIMEOUT), refused(reason):
            async with open_http() as http:
                await launch_repository(http, repository, Credentials(), print, **limit)
    finally:
        hub.lives.set()


async def test_a_build_that_fails_says_what_it_said_last(home, hub):
    hub.events = [*BUILD[:3], {"phase": "failed", "message": "No module named rain\n"}]
    with refused(r"(?s)could not start gh/ada/rain/main.*Step 1/50.*No module named rain"):
        await find(home, hub)


async def test_a_server_without_mcp_is_told(home, hub):
    hub.events = ready(f"{hub.url}/user/x/mcp-notebook")
    with refused(
        r"/user/x/mcp-notebook cannot be used \(status 200\). This is not an MCP endpoint"
    ):
        await find(home, hub)


async def test_the_token_of_a_server_on_another_machine_is_not_sent_in_clear(home, hub):
    hub.events = ready("http://192.0.2.1/user/x/mcp-notebook")
    with refused("add --insecure"):
        await find(home, hub)


async def test_the_users_own_token_goes_only_to_the_host_that_the_user_named(home, hub):
    """Of two hosts: a BinderHub with a login runs servers on its own, without a token of theirs."""
    repository = read_address(f"{hub.url}/v2/gh/ada/rain/main")
    own = Credentials(TOKEN, "the file hub.token")
    seen = []

    def answer(request):
        seen.append(request.headers.get("Authorization"))
        return discovered("mcp-notebook")

    async with open_http() as http:
        with web_server(answer) as other:
            hub.events = [*BUILD, {"phase": "ready", "url": f"{other}/user/x/"}]
            file = LaunchFile(home, repository)
            for _ in range(2):  # started, and found in the file
                with refused("The token from the file hub.token was not sent there. If you trust"):
                    await find_launch(http, repository, own, file)
            assert seen == []
            assert await find_launch(http, repository, Credentials(), file)
            assert seen == [None]
        file.path.unlink()
        hub.events = [*BUILD, {"phase": "ready", "url": f"{hub.url}/user/x/"}]
        with refused("This is not an MCP endpoint"):
            await find_launch(http, repository, own, file)
    assert hub.asked[-1] == "/user/x/mcp-notebook"
    assert hub.tokens[-1] == f"Bearer {TOKEN}"
