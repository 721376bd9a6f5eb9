"""The side panel's routes on a real JupyterHub: through its proxy, with its users' cookies."""

import json
from contextlib import contextmanager

import anyio
import anyio.to_thread
import httpx2
import pytest
from clients import over_http, text_of
from hubs import jupyter_hub
from jupyter_servers import close_websocket
from live import TIMEOUT, soon
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

pytestmark = pytest.mark.anyio
TOOLS = '''%%mcp_tool --run thread
import time
from mcp_notebook import Context

def count_for_ever(ctx: Context) -> None:
    """Count."""
    for i in range(1_000_000):
        ctx.progress(i, 1_000_000, "counting")
        time.sleep(0.01)
'''
API = "mcp-notebook/api"


@pytest.fixture
def anyio_backend():
    return "asyncio"  # tornado's client


@pytest.fixture(scope="module")
def hub(module_home):
    """A hub with two users, each with a running server; the first one's notebook has run."""
    with jupyter_hub(module_home) as hub:
        hub.add_users("ada", "bob")
        yield hub


@pytest.fixture(scope="module")
def token(hub):
    return hub.make_token("ada", "access:servers!user=ada")


@pytest.fixture(scope="module")
def kernel(hub, token):
    with hub.server("ada", token) as server:
        yield server.start_kernel("%load_ext mcp_notebook", TOOLS, path="rain.ipynb")


@pytest.fixture
def ada(hub):
    with log_in(hub, "ada") as page:
        yield page


@pytest.fixture
def bob(hub):
    with log_in(hub, "bob") as page:
        yield page


@contextmanager
def log_in(hub, name):
    """Log a user in, and open the page of the user's server; yield the browser."""
    options = {"timeout": TIMEOUT, "trust_env": False, "follow_redirects": True}
    with httpx2.Client(base_url=hub.url, **options) as page:
        page.get("hub/login")
        form = {"username": name, "password": "x", "_xsrf": find_xsrf(page, "/hub/")}
        page.post("hub/login", data=form).raise_for_status()
        assert page.get(f"user/{name}/lab").status_code == 200
        yield page


def find_xsrf(page, path):
    return next(
        cookie.value for cookie in page.cookies.jar if (cookie.name, cookie.path) == ("_xsrf", path)
    )


def find_own_xsrf(page, owner):
    """Return the token for a user's server; of another user's, there may be none."""
    names = {cookie.path: cookie.value for cookie in page.cookies.jar if cookie.name == "_xsrf"}
    return names.get(f"/user/{owner}/") or next(iter(names.values()))


def act(page, owner, **action):
    """Do something as the page of a user does."""
    headers = {"X-XSRFToken": find_own_xsrf(page, owner), "Sec-Fetch-Mode": "cors"}
    return page.post(
        f"user/{owner}/{API}/actions", json=action, headers=headers, follow_redirects=False
    )


def connect(hub, page, *, origin=None):
    """Open the stream of the first user's server with the cookies of a page."""
    xsrf = find_own_xsrf(page, "ada")
    request = page.build_request("GET", f"user/ada/{API}/changes", params={"_xsrf": xsrf})
    headers = {"Cookie": request.headers["Cookie"], "Origin": origin or hub.url.rstrip("/")}
    url = str(request.url).replace("http", "ws", 1)
    return websocket_connect(HTTPRequest(url, headers=headers))


async def test_a_call_is_seen_and_stopped_through_the_proxy(hub, token, kernel, ada):
    socket = await connect(hub, ada)

    async def find_call():
        while True:
            changes = json.loads(await socket.read_message()).get("changes") or {}
            for call in changes.get("open_calls", ()):
                if call.get("progress"):
                    return call

    async with (
        over_http(f"{hub.url}user/ada/mcp-notebook", "legacy", token=token) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "count_for_ever", {})
        with anyio.fail_after(TIMEOUT):
            call = await find_call()
        answer = await anyio.to_thread.run_sync(
            lambda: act(ada, "ada", kernel=kernel, action="stop", call=call["number"])
        )
        assert answer.json()["message"].startswith("Stopped count_for_ever.")
    await close_websocket(socket)


async def test_another_users_cookie_and_another_origin_are_refused(hub, kernel, ada, bob):
    assert kernel in ada.get(f"user/ada/{API}/state").json()["notebooks"]
    for path in ("state", "clients", f"calls/{kernel}/1"):
        answer = bob.get(f"user/ada/{API}/{path}", follow_redirects=False)
        assert answer.status_code in (401, 403), path
    answer = act(bob, "ada", kernel=kernel, action="switch", tool="count_for_ever", on=False)
    assert answer.status_code in (401, 403)
    for page, origin in ((bob, None), (ada, "https://evil.example")):
        with pytest.raises(HTTPClientError) as refusal:
            await connect(hub, page, origin=origin)
        assert refusal.value.code == 403


def test_the_clients_of_the_hubs_machine_are_neither_told_nor_changed(hub, ada):
    found = ada.get(f"user/ada/{API}/clients").json()
    assert found["place"] == "JupyterHub"
    assert {"name": "cursor", "title": "Cursor"} in found["clients"]
    headers = {"X-XSRFToken": find_xsrf(ada, "/user/ada/")}
    answer = ada.post(f"user/ada/{API}/clients", json={"client": "cursor"}, headers=headers)
    assert answer.status_code == 403
    assert "on your own computer" in answer.json()["message"]


def test_the_panel_in_a_browser_has_the_lines_for_the_users_own_computer(hub, kernel):
    pytest.importorskip("playwright")
    from lab_page import SCREENSHOTS, SOON  # noqa: PLC0415 - of the extra `browser`
    from playwright.sync_api import expect  # noqa: PLC0415
    from web_browser import launched_chromium  # noqa: PLC0415

    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (hub.home / "ada" / "rain.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with launched_chromium() as chromium:
        page = chromium.new_page()
        page.set_default_timeout(SOON)
        page.goto(f"{hub.url}user/ada/lab/tree/rain.ipynb")
        page.get_by_label("Username:").fill("ada")
        page.get_by_label("Password:").fill("x")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_title("Tools of the notebook (MCP)").click()
        panel = page.locator("#mcp-notebook-panel")
        expect(panel).to_contain_text("count_for_ever", timeout=SOON)
        panel.get_by_role("button", name="Connect an assistant").click()
        line = f"mcp-notebook install claude-code --url {hub.url}user/ada/mcp-notebook --token-file"
        expect(panel).to_contain_text(line, timeout=SOON)
        link = panel.get_by_role("link", name="Make a token on the page of the JupyterHub.")
        expect(link).to_have_attribute("href", "/hub/token")
        page.screenshot(path=SCREENSHOTS / "side_panel_hub.png")


async def test_no_other_user_answers_a_proposal(hub, token, kernel, ada):
    on = {"kernel": kernel, "action": "propose", "on": True}
    with log_in(hub, "bob") as bob:
        assert act(bob, "ada", **on).status_code in (302, 401, 403)
        assert act(ada, "ada", **on).status_code == 200
        socket = await connect(hub, ada)

        async def find_proposal():
            while True:
                changes = json.loads(await socket.read_message()).get("changes") or {}
                for proposal in changes.get("proposals", ()):
                    return proposal

        results = []

        async def propose(client):
            cell = {"source": "n = 1", "reason": "To have n."}
            results.append(await client.call_tool("propose_cell", cell))

        url = f"{hub.url}user/ada/mcp-notebook"
        async with over_http(url, "legacy", token=token) as client:
            await soon(lambda: _can_propose(client))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(propose, client)
                with anyio.fail_after(TIMEOUT):
                    proposal = await find_proposal()
                number = proposal["number"]
                reject = {"kernel": kernel, "action": "reject", "proposal": number, "word": "no"}
                take = {"kernel": kernel, "action": "take", "proposal": number, "run": True}
                take["digest"] = proposal["digest"]
                for action in (take, reject):
                    answer = await anyio.to_thread.run_sync(lambda it=action: act(bob, "ada", **it))
                    assert answer.status_code in (302, 401, 403)
                await anyio.to_thread.run_sync(lambda: act(ada, "ada", **reject))
        assert "She said: no" in text_of(results[0])
        await close_websocket(socket)


async def _can_propose(client):
    return "propose_cell" in {tool.name for tool in (await client.list_tools()).tools}
