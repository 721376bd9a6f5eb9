"""The routes of the side panel: what a page sees of a real server's notebooks, and what it does."""

import json
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import httpx2
import pytest
from clients import Changes as ListChanges
from clients import over_http, text_of
from file_events import appears
from jupyter_servers import HEADERS, TOKEN, close_websocket, jupyter_server, login
from live import TIMEOUT, soon
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

pytestmark = pytest.mark.anyio

API = "mcp-notebook/api"
TOOLS = """%load_ext mcp_notebook
import pathlib, time
from mcp_notebook import Context, mcp_tool
from pydantic import SecretStr

@mcp_tool(run="thread")
def count_for_ever(began: str, ctx: Context) -> None:
    "Count."
    pathlib.Path(began).touch()
    for i in range(1_000_000):
        ctx.progress(i, 1_000_000, "counting")
        time.sleep(0.01)

@mcp_tool(confirm=True, run="thread")
def delete_all(path: str) -> str:
    "Delete all."
    return f"deleted {path}"

@mcp_tool(run="thread")
def add(a: int) -> int:
    "Add one."
    return a + 1

@mcp_tool(run="thread")
def wait_after_progress(folder: str, ctx: Context) -> None:
    "Report progress once, and wait."
    folder = pathlib.Path(folder)
    print("printed before")
    ctx.progress(3, 10, "three of ten")
    (folder / "began").touch()
    while not (folder / "print").exists(): time.sleep(0.01)
    print("printed later")
    while not (folder / "end").exists(): time.sleep(0.01)

@mcp_tool(run="thread")
def draw():
    "A picture."
    from PIL import Image
    return Image.new("RGB", (30, 20), "red")

@mcp_tool(run="thread")
def photograph(secret: "SecretStr"):
    "A large picture."
    import os
    from PIL import Image
    return [Image.frombytes("RGB", (600, 400), os.urandom(720_000)) for _ in range(2)]
"""


@pytest.fixture
def anyio_backend():
    return "asyncio"  # tornado's client


class Changes:
    """The stream of a page, and what it has told, put together."""

    def __init__(self, socket):
        self._socket = socket
        self.notebooks = {}
        self.told = []
        self.is_ready = False

    async def until(self, is_so):
        """Read on until the function of the notebooks returns something, and return that."""
        with anyio.fail_after(TIMEOUT):
            while not (found := self.is_ready and is_so(self.notebooks)):
                self._take(json.loads(await self._socket.read_message()))
        return found

    def _take(self, message):
        if message.get("ready"):
            self.is_ready = True
        elif message["changes"] is None:
            self.notebooks.pop(message["kernel"], None)
        else:
            state, changes = self.notebooks.setdefault(message["kernel"], {}), message["changes"]
            self.told.append(changes)
            for name, (calls, errors) in changes.get("counts", {}).items():
                for tool in state["tools"]:
                    if tool["name"] == name:
                        tool |= {"calls": calls, "errors": errors}
            state.update({name: part for name, part in changes.items() if name != "counts"})


@asynccontextmanager
async def watch(server, **headers):
    url = server.url.replace("http", "ws", 1) + f"{API}/changes"
    socket = await websocket_connect(HTTPRequest(url, headers=HEADERS | headers))
    try:
        yield Changes(socket)
    finally:
        await close_websocket(socket)


@pytest.fixture(scope="module")
def kernel(server):
    """The id of a kernel with the tools."""
    return server.start_kernel(TOOLS, path="panel.ipynb")


async def act(page, kernel, **action):
    body = {"kernel": kernel} | action
    return await anyio.to_thread.run_sync(lambda: page.post(f"{API}/actions", json=body))


@asynccontextmanager
async def busy(server, kernel, folder):
    """Keep the kernel's main thread for the length of the block, as `time.sleep(60)` does."""
    release, began = folder / "release", folder / "busy"
    cell = (
        f"pathlib.Path({str(began)!r}).touch()\n"
        f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.01)"
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, server.run, kernel, cell)
        await appears(began)
        try:
            yield
        finally:
            release.touch()


def connect(server, **options):
    return over_http(f"{server.url}mcp-notebook/panel", "legacy", token=TOKEN, **options)


def find_call(kernel, tool):
    def find(notebooks):
        calls = notebooks.get(kernel, {}).get("open_calls", ())
        return next((call for call in calls if call["tool"] == tool), None)

    return find


async def test_of_tools_only_new_numbers_of_calls_are_sent(server, kernel):
    async with watch(server) as changes, connect(server) as client:
        await changes.until(lambda notebooks: kernel in notebooks)

        def find_add(notebooks):
            return next(t for t in notebooks[kernel]["tools"] if t["name"] == "add")

        before = find_add(changes.notebooks)["calls"]
        changes.told.clear()
        for number in (1, 2):
            await client.call_tool("add", {"a": 1})
            expected = before + number
            await changes.until(lambda it, calls=expected: find_add(it)["calls"] == calls)
        assert not any("tools" in told for told in changes.told)
        assert {name for told in changes.told for name in told.get("counts", ())} == {"add"}
        async with watch(server) as later:
            await later.until(lambda notebooks: kernel in notebooks)
            assert find_add(later.notebooks) == find_add(changes.notebooks)


@pytest.mark.smoke
async def test_a_call_is_seen_with_its_progress_and_stopped_while_a_cell_runs(
    server, kernel, page, tmp_path
):
    async with watch(server) as changes, connect(server) as client:
        await changes.until(lambda notebooks: kernel in notebooks)
        assert changes.notebooks[kernel]["name"] == "panel"
        async with busy(server, kernel, tmp_path), anyio.create_task_group() as tasks:
            results = []

            async def call():
                # It asks for no progress.
                began = str(tmp_path / "began")
                results.append(await client.call_tool("count_for_ever", {"began": began}))

            tasks.start_soon(call)

            def has_progress(notebooks):
                call = find_call(kernel, "count_for_ever")(notebooks)
                return call if call and call.get("progress", 0) > 1 else None

            seen = await changes.until(has_progress)
            assert (seen["total"], seen["message"]) == (1_000_000, "counting")
            assert seen["call"].startswith("count_for_ever(began='")
            answer = await act(page, kernel, action="stop", call=seen["number"])
            assert answer.json()["message"].startswith("Stopped count_for_ever.")
        assert "stopped the call in the side panel" in text_of(results[0])
        await changes.until(lambda notebooks: not notebooks[kernel]["open_calls"])
        call = changes.notebooks[kernel]["ended_calls"][0]
        assert (call["state"], call["result"]) == ("stopped", "by you, in the side panel")
        assert not call["is_error"]


async def test_a_page_that_comes_later_sees_how_far_a_call_is(server, kernel, tmp_path):
    async with connect(server) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "wait_after_progress", {"folder": str(tmp_path)})
        await appears(tmp_path / "began")
        async with watch(server) as changes:
            find = find_call(kernel, "wait_after_progress")
            seen = await changes.until(find)
            assert (seen["progress"], seen["total"], seen["message"]) == (3, 10, "three of ten")
            (tmp_path / "print").touch()
            await changes.until(lambda notebooks: find(notebooks)["message"] == "printed later")
        (tmp_path / "end").touch()


@pytest.mark.parametrize(
    ("decision", "expected"), [("once", "deleted /x"), ("deny", "did not allow it")]
)
async def test_a_question_is_answered_in_the_panel_while_a_cell_runs(  # noqa: PLR0913, PLR0917
    server, kernel, page, tmp_path, decision, expected
):
    async with watch(server) as changes, connect(server) as client:
        await changes.until(lambda notebooks: kernel in notebooks)
        async with busy(server, kernel, tmp_path), anyio.create_task_group() as tasks:
            results = []

            async def call():
                results.append(await client.call_tool("delete_all", {"path": "/x"}))

            tasks.start_soon(call)
            (question,) = await changes.until(lambda notebooks: notebooks[kernel]["questions"])
            assert 'path = "/x"' in question["text"]
            answer = await act(
                page, kernel, action="answer", question=question["number"], decision=decision
            )
            assert answer.status_code == 200
            again = await act(
                page, kernel, action="answer", question=question["number"], decision="once"
            )
            assert again.status_code == 409
        assert expected in text_of(results[0])
        await changes.until(lambda notebooks: not notebooks[kernel]["questions"])


async def test_a_tool_that_is_switched_off_is_gone_for_clients_and_comes_back(server, kernel, page):
    lists = ListChanges()

    async def wait_for_list(client, *, has_add):
        while ("add" in {tool.name for tool in (await client.list_tools()).tools}) is not has_add:
            await lists.wait()

    async with (
        watch(server) as changes,
        connect(server, message_handler=lists.handle) as client,
        lists.watch(client, "legacy"),
    ):
        await changes.until(lambda notebooks: kernel in notebooks)
        answer = await act(page, kernel, action="switch", tool="add", on=False)
        assert answer.json()["message"] == "Clients no longer see add."

        def find_add(notebooks):
            return next(tool for tool in notebooks[kernel]["tools"] if tool["name"] == "add")

        await changes.until(lambda notebooks: not find_add(notebooks)["on"])
        await wait_for_list(client, has_add=False)
        refused = await client.call_tool("add", {"a": 1})
        assert refused.is_error
        assert "switched it off" in text_of(refused)
        await act(page, kernel, action="switch", tool="add", on=True)
        await changes.until(lambda notebooks: find_add(notebooks)["on"])
        await wait_for_list(client, has_add=True)
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"


async def test_the_arguments_and_the_picture_of_a_call_can_be_asked_for(server, kernel, page):
    async with watch(server) as changes, connect(server) as client:
        await changes.until(lambda notebooks: kernel in notebooks)
        await client.call_tool("draw", {})
        call = await changes.until(
            lambda notebooks: [
                call for call in notebooks[kernel]["ended_calls"] if call["tool"] == "draw"
            ]
        )
    assert call[0]["has_picture"]
    path = f"{API}/calls/{kernel}/{call[0]['number']}"
    details = page.get(path).json()
    assert details["source"] == "%mcp call draw {}"
    assert details["pictures"] == ["image/png"]
    picture = page.get(f"{path}/pictures/0")
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert picture.content.startswith(b"\x89PNG")
    assert page.get(f"{path}/pictures/1").status_code == 404
    assert page.get(f"{API}/calls/{kernel}/999999").status_code == 404


async def test_a_thumbnail_has_a_few_kilobytes_and_secrets_are_a_gap(server, kernel, page):
    async with watch(server) as changes, connect(server) as client:
        await changes.until(lambda notebooks: kernel in notebooks)
        await client.call_tool("photograph", {"secret": "hunter2"})
        (call,) = await changes.until(
            lambda notebooks: [
                call for call in notebooks[kernel]["ended_calls"] if call["tool"] == "photograph"
            ]
        )
    path = f"{API}/calls/{kernel}/{call['number']}"
    details = page.get(path).json()
    assert details["gap"] == "secret"
    assert len(details["pictures"]) == 2
    small = page.get(f"{path}/thumbnail")
    assert small.headers["Content-Type"] == "image/png"
    assert "immutable" in small.headers["Cache-Control"]
    assert len(small.content) <= 6_000
    pictures = {page.get(f"{path}/pictures/{index}").content for index in range(2)}
    assert len(pictures) == 2
    assert min(map(len, pictures)) > 100_000
    assert page.get(f"{path}/pictures/2").status_code == 404


async def test_a_call_can_be_asked_for_as_a_cell_with_its_result(server, kernel, page):
    async with watch(server) as changes, connect(server) as client:
        await changes.until(lambda notebooks: kernel in notebooks)
        await client.call_tool("add", {"a": 41})
        await client.call_tool("add", {"a": "<b>"})
        await client.call_tool("draw", {})
        last_tools = ["draw", "add", "add"]

        def find_last(notebooks):
            calls = notebooks[kernel]["ended_calls"][:3]
            return calls if [call["tool"] for call in calls] == last_tools else None

        drawn, failed, added = await changes.until(find_last)

    def read_cell(call):
        return page.get(f"{API}/calls/{kernel}/{call['number']}/cell").raise_for_status().json()

    cell = read_cell(added)
    assert cell["source"] == '%mcp call add {"a": 41}'
    assert cell["outputs"][0]["data"]["text/plain"] == "42"
    assert "image/png" in read_cell(drawn)["outputs"][0]["data"]
    (output,) = read_cell(failed)["outputs"]
    assert output["output_type"] == "error"
    assert page.get(f"{API}/calls/{kernel}/999999/cell").status_code == 404


# -- who is let in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        {"action": "switch", "tool": "add", "on": False},
        {"action": "propose", "on": True},
        {"action": "take", "proposal": 1, "digest": "0", "run": True},
        {"action": "settle", "proposal": 1, "outcome": "inserted", "cell": "a"},
        {"action": "reject", "proposal": 1, "word": "no"},
        {"action": "undo", "proposal": 1},
    ],
)
def test_only_pages_of_the_server_may_ask(kernel, page, server, action):
    body = {"kernel": kernel, **action}
    del page.headers["X-XSRFToken"]
    assert page.post(f"{API}/actions", json=body).status_code == 403, "without the XSRF token"
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False) as stranger:
        assert stranger.post(f"{API}/actions", json=body).status_code in (401, 403)
        for path in (f"{API}/state", f"{API}/calls/{kernel}/1"):
            assert stranger.get(path).status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", None])
async def test_the_stream_wants_a_login_and_refuses_pages_of_other_origins(server, page, origin):
    cookies = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
    url = server.url.replace("http", "ws", 1) + f"{API}/changes"
    headers = {"Cookie": cookies, "Origin": origin} if origin else {"Authorization": "token wrong"}
    with pytest.raises(HTTPClientError) as refusal:
        await websocket_connect(HTTPRequest(url, headers=headers))
    assert refusal.value.code == 403


def open_as(page, server, xsrf):
    """Open the stream of a page, with its cookies and this XSRF token in the address."""
    cookies = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
    url = server.url.replace("http", "ws", 1) + f"{API}/changes{xsrf}"
    own = server.url.removesuffix("/base/")
    headers = {"Cookie": cookies, "Origin": own, "Referer": server.url}
    return websocket_connect(HTTPRequest(url, headers=headers))


@pytest.mark.parametrize("xsrf", ["", "?_xsrf=", "?_xsrf=wrong"])
async def test_the_stream_wants_the_xsrf_token_of_its_page(server, page, xsrf):
    with pytest.raises(HTTPClientError) as refusal:
        await open_as(page, server, xsrf)
    assert refusal.value.code == 403
    await close_websocket(await open_as(page, server, f"?_xsrf={page.cookies['_xsrf']}"))


async def test_the_stream_ends_when_its_user_logs_out(server, kernel):
    with login(server) as one, login(server) as other:
        ended, kept = [
            await open_as(each, server, f"?_xsrf={each.cookies['_xsrf']}") for each in (one, other)
        ]
        for socket in (ended, kept):
            while not json.loads(await socket.read_message()).get("ready"):
                pass
        await anyio.to_thread.run_sync(lambda: one.get("logout"))
        with anyio.fail_after(TIMEOUT):
            while await ended.read_message() is not None:
                pass
        assert ended.close_code == 1008
        ended.close()
        assert kept.close_code is None
        await close_websocket(kept)


@pytest.mark.exhaustive
async def test_the_stream_ends_when_its_cookie_expires(home):
    limit = "--IdentityProvider.get_secure_cookie_kwargs={'max_age_days': 0.0005}"  # 43 s
    with jupyter_server(home, limit) as server, login(server) as page:
        socket = await open_as(page, server, f"?_xsrf={page.cookies['_xsrf']}")
        while await socket.read_message() is not None:
            pass
        assert socket.close_code == 1008
        socket.close()


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"action": "stop"},
        {"action": "stop", "call": 0},
        {"action": "stop", "call": "1; rm"},
        {"action": "answer", "question": 1, "decision": "always"},
        {"action": "switch", "tool": "add", "on": None},
        {"action": "run", "code": "1"},
        {"action": "take", "proposal": 1, "digest": "0", "run": True, "code": "1"},
        {"action": "settle", "proposal": 1, "outcome": "accepted"},
        {"action": "reject", "proposal": "1; rm"},
    ],
)
async def test_an_invalid_action_is_refused(kernel, page, action):
    answer = await act(page, kernel, **action)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("This is not an action of the side panel")


async def test_what_cannot_be_done_is_a_conflict_that_says_why(kernel, page):
    answer = await act(page, "no-such-kernel", action="stop", call=1)
    assert answer.status_code == 409
    assert "%load_ext mcp_notebook" in answer.json()["message"]
    answer = await act(page, kernel, action="switch", tool="100%", on=True)
    assert answer.status_code == 409
    assert answer.json()["message"].startswith("This notebook declares nothing called '100%';")
    # Numbers begin again with each start of a kernel: what a page showed of the last one is over.
    answer = await act(page, kernel, action="stop", call=1, record="of the start before")
    assert answer.status_code == 409
    assert "was restarted in the meantime" in answer.json()["message"]


# -- cells that clients propose --------------------------------------------------------------------

CELL = {"source": "n = 6 * 7\nprint(n)", "reason": "To have n."}
OUTPUTS = [{"output_type": "stream", "name": "stdout", "text": ["42\n"]}]


@pytest.fixture(scope="module")
def proposing(server):
    """The id of a kernel whose notebook clients propose cells for."""
    return server.start_kernel("%load_ext mcp_notebook", path="proposed.ipynb")


@asynccontextmanager
async def proposed(server, proposing, page, changes, **arguments):
    """Propose a cell over ``/mcp``; yield the open proposal and what the client gets later."""
    answer = await act(page, proposing, action="propose", on=True)
    assert answer.status_code == 200
    results = []
    async with over_http(f"{server.url}mcp", "auto", token=TOKEN) as client:
        await soon(lambda: has_tool(client))

        async def call():
            results.append(await client.call_tool("propose_cell", CELL | arguments))

        def find(notebooks):
            return (notebooks.get(proposing, {}).get("proposals") or (None,))[0]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            yield await changes.until(find), results


async def has_tool(client):
    return "propose_cell" in {tool.name for tool in (await client.list_tools()).tools}


async def test_a_page_accepts_and_runs_a_cell(server, proposing, page):
    async with watch(server) as changes:
        async with proposed(server, proposing, page, changes) as (proposal, results):
            assert proposal["source"] == CELL["source"]
            assert "after" not in proposal
            number = proposal["number"]
            take = {"action": "take", "proposal": number, "digest": proposal["digest"], "run": True}
            assert (await act(page, proposing, **take)).status_code == 200
            again = await act(page, proposing, **take)
            assert again.status_code == 409
            assert "another page" in again.json()["message"]
            settle = {"action": "settle", "proposal": number, "cell": "c1"}
            await act(page, proposing, outcome="inserted", **settle)
            await act(page, proposing, outcome="ran", outputs=OUTPUTS, **settle)
        assert text_of(results[0]).endswith("The user ran it.\n42")
        accepted = await changes.until(lambda notebooks: notebooks[proposing].get("accepted"))
        assert accepted[0]["cell"] == "c1"
        undone = await act(page, proposing, action="undo", proposal=number)
        assert undone.json()["message"] == "Took back what only this cell had defined."


async def test_a_page_rejects_a_cell_with_a_word(server, proposing, page):
    async with watch(server) as changes:
        async with proposed(server, proposing, page, changes) as (proposal, results):
            reject = {"action": "reject", "proposal": proposal["number"], "word": "<b>no</b>"}
            assert (await act(page, proposing, **reject)).status_code == 200
        assert text_of(results[0]).endswith("She said: <b>no</b>")


@pytest.mark.parametrize(
    "action",
    [
        {"action": "take", "proposal": 1, "digest": "0", "run": "often"},
        {"action": "take", "proposal": 1, "run": True},
        {"action": "settle", "proposal": 1, "outcome": "executed"},
        {"action": "reject", "proposal": 1, "why": "no"},
        {"action": "propose"},
    ],
)
async def test_what_is_no_action_is_refused(proposing, page, action):
    assert (await act(page, proposing, **action)).status_code == 400


async def test_no_page_of_another_origin_presses_a_button(server, proposing, page):
    body = {"kernel": proposing, "action": "propose", "on": True}
    token = page.headers.pop("X-XSRFToken")
    for headers in ({}, {"Origin": "https://evil.example"}, {"X-XSRFToken": "guessed"}):
        assert page.post(f"{API}/actions", json=body, headers=headers).status_code in (403, 404)
    other = {"Origin": "https://evil.example", "Cookie": "", "X-XSRFToken": token}
    assert page.post(f"{API}/actions", json=body, headers=other).status_code in (403, 404)


async def test_a_restart_answers_the_client(server, proposing, page):
    async with watch(server) as changes:
        async with proposed(server, proposing, page, changes) as (proposal, results):
            server.http.post(f"api/kernels/{proposing}/restart").raise_for_status()
        assert results[0].is_error
        assert "restarted" in text_of(results[0])
        take = {"proposal": proposal["number"], "digest": proposal["digest"], "run": True}
        answer = await act(page, proposing, action="take", **take)
        assert answer.status_code == 409
