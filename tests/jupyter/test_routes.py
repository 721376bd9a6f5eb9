"""The routes of a real Jupyter Server: the tools of its kernels."""

import http.client
import json
from contextlib import closing
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
import pytest
from bridges import INITIALIZE
from clients import over_http, text_of
from endpoints import modern
from file_events import appears
from jupyter_servers import HEADERS, LOOK, TOKEN, jupyter_server
from listing import list_tools
from live import TIMEOUT, live_kernel, until
from mcp import MCPError

from mcp_notebook.jupyter.mcp_handler import McpHandler

pytestmark = pytest.mark.anyio

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {"notifications": {"toolsListChanged": True}},
}
ADD = '%%mcp_tool\ndef add(a: int) -> int:\n    "Add."\n    return a + 1'


def _connect(server, era, notebook="", **options):
    url = f"{server.url}mcp-notebook" + (f"/{notebook}" if notebook else "")
    return over_http(url, era, token=TOKEN, **options)


@pytest.mark.smoke
@pytest.mark.parametrize("path", ["mcp-notebook", "mcp"])
async def test_the_tools_of_all_notebooks_are_called_below_the_servers_base_url(server, era, path):
    async with over_http(f"{server.url}{path}", era, token=TOKEN) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"double_sales", "double_rain", "sales_measure", "rain_measure"} <= names
        assert text_of(await client.call_tool("double_rain", {"n": 21})) == "42"


@pytest.mark.parametrize("notebook", ["sales", "sales.ipynb", "100%25 of K%C3%B6ln/sales"])
async def test_below_the_name_of_a_notebook_are_its_tools_alone(server, notebook):
    async with _connect(server, "auto", notebook) as client:
        names = {tool.name for tool in await list_tools(client)}
        assert names == {"double_sales", "measure", "count_to", "wait_to_be_stopped"}
        assert text_of(await client.call_tool("double_sales", {"n": 4})) == "8"


def test_the_head_of_an_answer_is_the_bridges_and_the_connection_is_the_servers(server):
    accept = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(headers=HEADERS | accept, timeout=TIMEOUT, trust_env=False) as http:
        answer = http.post(f"{server.url}mcp-notebook", json=INITIALIZE)
        assert "Set-Cookie" not in answer.headers
        session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        accepted = http.post(f"{server.url}mcp-notebook", json=initialized, headers=session)
    assert accepted.status_code == 202
    for head in (answer.headers, accepted.headers):
        assert head["Server"].startswith("TornadoServer")
        assert head["X-Accel-Buffering"] == "no"  # nginx, which a Hub may have, would hold it back
        assert len(head.get_list("Date")) == 1
    assert answer.headers.get_list("Content-Type") == ["application/json"]
    assert "text/html" not in accepted.headers.get("Content-Type", "")


def test_the_head_of_a_stream_is_sent_before_its_first_event(server):
    """The first event may be a ping after 15 seconds."""
    accept = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(headers=HEADERS | accept, timeout=10, trust_env=False) as http:
        answer = http.post(f"{server.url}mcp-notebook", json=INITIALIZE)
        session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        http.post(f"{server.url}mcp-notebook", json=initialized, headers=session)
        with http.stream("GET", f"{server.url}mcp-notebook", headers=session) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")


@pytest.mark.slow
def test_a_message_is_activity_of_the_server_and_a_stream_that_is_opened_again_is_none(home):
    with jupyter_server(home) as server:  # without kernels, whose activity counts as well
        accept = {"Accept": "application/json, text/event-stream"}
        message, headers = modern(LISTEN)
        with httpx2.Client(headers=HEADERS | accept, timeout=TIMEOUT, trust_env=False) as http:

            def read_last_activity():
                return http.get(f"{server.url}api/status").json()["last_activity"]

            before = read_last_activity()
            answer = http.post(f"{server.url}mcp-notebook", json=INITIALIZE)
            session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
            after = read_last_activity()
            assert before < after
            with http.stream("GET", f"{server.url}mcp-notebook", headers=session) as stream:
                assert stream.status_code == 200
            with http.stream(
                "POST", f"{server.url}mcp-notebook", json=message, headers=headers
            ) as stream:
                assert stream.status_code == 200
            assert (
                http.get(f"{server.url}mcp-notebook", headers={"Accept": "*/*"}).status_code >= 400
            )
            assert read_last_activity() == after


# -- while a call runs -----------------------------------------------------------------------------


async def test_progress_arrives_while_the_call_runs_and_the_server_answers_others(
    server, era, tmp_path
):
    release = tmp_path / "release"
    seen = []

    async def note(progress, total, message):
        seen.append(progress)
        assert await anyio.to_thread.run_sync(server.states), "the server is not blocked"
        # Without this, the next one would not come.
        await anyio.Path(f"{release}-{int(progress) - 1}").touch()

    async with _connect(server, era, "sales") as client:
        result = await client.call_tool(
            "count_to", {"n": 3, "release": str(release)}, progress_callback=note
        )
    assert text_of(result) == "counted"
    assert seen == [1, 2, 3]


async def test_a_hang_up_ends_the_request_to_the_bridge_before_anything_is_to_be_written():
    """Otherwise it would be noticed at the bridge's next sign of life, 15 seconds later."""
    handler = object.__new__(McpHandler)
    handler._relaying = anyio.CancelScope()
    with anyio.fail_after(TIMEOUT), handler._relaying:
        handler.on_connection_close()
        await anyio.sleep_forever()
    assert handler._relaying.cancelled_caught


async def test_a_client_that_hangs_up_stops_its_call(server, tmp_path):
    seen = tmp_path / "seen"
    async with _connect(server, "auto", "sales") as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait_to_be_stopped", {"seen": str(seen)})
                await appears(tmp_path / "seen-began")
                scope.cancel()
        await appears(tmp_path / "seen-stopped")


@pytest.mark.slow
async def test_arguments_may_have_nearly_four_megabytes(server, era):
    async with _connect(server, era, "sales") as client:
        result = await client.call_tool("measure", {"text": "x" * 4_100_000})
    assert text_of(result) == "4100000"


# -- who is let in ---------------------------------------------------------------------------------


def _ask(server, path="mcp", method="POST", cookies=None, **headers):
    return httpx2.request(
        method,
        f"{server.url}{path}",
        json=LIST,
        headers={"Accept": "application/json, text/event-stream"} | headers,
        cookies=cookies,
        trust_env=False,
        timeout=TIMEOUT,
    )


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
def test_without_the_right_token_the_answer_is_401_and_no_redirect(server, method, headers):
    answer = _ask(server, method=method, **headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["message"].startswith("The token is missing or wrong.")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "mcp"), ("GET", "mcp/"), ("DELETE", "mcp/sales")]
)
@pytest.mark.parametrize("headers", [{}, {"Authorization": f"token {TOKEN}"}])
def test_a_token_in_the_address_opens_nothing(server, method, path, headers):
    answer = _ask(server, f"{path}?token={TOKEN}", method=method, **headers)
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers
    assert "header `Authorization" in answer.json()["message"]


def test_a_token_in_the_body_of_a_form_opens_nothing(server):
    with httpx2.Client(trust_env=False) as http:
        assert http.post(f"{server.url}mcp-notebook", data={"token": TOKEN}).status_code == 401


@pytest.mark.parametrize(
    "path", ["..%2fhealthz", "..%2Fhealthz", "..", "%2e%2e", ".", "a%2f..%2f..%2fhealthz", "..%2f"]
)
def test_no_name_of_a_notebook_leads_to_another_path_of_the_bridge(server, path):
    target = f"{urlsplit(server.url).path}mcp-notebook/{path}"
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=TIMEOUT)
    with closing(connection):
        connection.request("GET", target, headers=HEADERS)
        answer = connection.getresponse()
        assert answer.status == 404
        assert "is called" in json.loads(answer.read())["error"]


@pytest.mark.parametrize(
    "value", [b"\xe9", b"\xc3\xa9", b"\xff\xfe", b"a\tb", b"\x7f", b"", b"x" * 9_000]
)
@pytest.mark.parametrize("name", [b"Mcp-Name", b"Mcp-Method", b"MCP-Protocol-Version", b"mcp-x"])
def test_headers_may_contain_any_bytes(server, name, value):
    headers = [(b"Authorization", f"token {TOKEN}".encode()), (name, value)]
    # Tornado refuses a control character and closes: a body that it has not read costs the answer.
    body = {} if value == b"\x7f" else {"json": LIST}
    with httpx2.Client(trust_env=False, timeout=TIMEOUT) as client:
        answer = client.post(f"{server.url}mcp-notebook", headers=headers, **body)
    assert answer.status_code < 500, answer.text


def test_a_cookie_alone_is_refused_even_with_its_xsrf_token(server):
    with httpx2.Client(trust_env=False, follow_redirects=True) as browser:
        browser.get(f"{server.url}api/status", headers={"Authorization": f"token {TOKEN}"})
        browser.get(f"{server.url}login")
        xsrf = browser.cookies.get("_xsrf")
        assert browser.get(f"{server.url}api/kernels").status_code == 200, "the cookie is good"
        for headers in ({}, {"X-XSRFToken": xsrf}):
            answer = browser.post(f"{server.url}mcp-notebook", json=LIST, headers=headers)
            assert answer.status_code == 403
            assert "cookie is not enough" in answer.json()["message"]


def test_a_page_of_another_origin_is_refused_even_with_the_token(server):
    good = {"Authorization": f"token {TOKEN}"}
    answer = _ask(server, **good, Origin="https://evil.example")
    assert answer.status_code == 403
    assert "Origin" in answer.json()["message"]
    for origin in (server.url.removesuffix("/base/"), "https://app.example"):
        assert _ask(server, **good, Origin=origin).status_code == 400, "the bridge has seen it"


def test_a_host_that_the_server_does_not_have_is_refused(server):
    answer = _ask(server, Authorization=f"token {TOKEN}", Host="evil.example")
    assert answer.status_code == 403
    assert "Host" in answer.json()["message"]


def test_an_unknown_notebook_is_answered_with_those_that_there_are(server):
    answer = _ask(server, "mcp/weather", Authorization=f"token {TOKEN}")
    assert answer.status_code == 404
    assert "called 'weather'. Notebooks with tools: rain, sales." in answer.json()["error"]


# -- which kernels ---------------------------------------------------------------------------------


async def test_a_kernel_that_is_not_the_servers_is_not_served(server):
    with live_kernel(server.home, notebook=str(server.home / "alien.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok('%%mcp_tool\ndef alien() -> int:\n    "Alien."\n    return 1')
        async with _connect(server, "auto") as client:
            assert "alien" not in {tool.name for tool in (await client.list_tools()).tools}
        answer = _ask(server, "mcp/alien", Authorization=f"token {TOKEN}")
        assert answer.status_code == 404


@pytest.mark.parametrize("era", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_a_client_stays_when_its_kernel_is_restarted(server, era):
    kernel_id = server.start_kernel("%load_ext mcp_notebook", ADD, path="restarted.ipynb")
    async with _connect(server, era, "restarted") as client:
        await _wait_for_tools(client)
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
        server.http.post(f"api/kernels/{kernel_id}/restart").raise_for_status()
        assert not (await client.list_tools()).tools
        server.run(kernel_id, "%load_ext mcp_notebook", ADD.replace("+ 1", "+ 2"))
        await _wait_for_tools(client)
        assert text_of(await client.call_tool("add", {"a": 1})) == "3"
    server.http.delete(f"api/kernels/{kernel_id}").raise_for_status()


async def _wait_for_tools(client):
    with anyio.fail_after(TIMEOUT):
        while not (await client.list_tools()).tools:  # noqa: ASYNC110 - another process
            await anyio.sleep(LOOK)


@pytest.mark.slow
async def test_a_bridge_that_died_is_started_again(server):
    (bridge,) = server.find_bridges()
    bridge.kill()
    until(lambda: not bridge.is_running())
    async with _connect(server, "auto", "sales") as client:
        assert text_of(await client.call_tool("double_sales", {"n": 4})) == "8"
    (successor,) = server.find_bridges()
    assert successor != bridge


async def test_a_call_whose_bridge_dies_in_the_middle_of_its_answer_is_an_error(server, tmp_path):
    release = tmp_path / "release"

    async def kill_bridge(progress, total, message):
        (bridge,) = server.find_bridges()
        bridge.kill()

    async with _connect(server, "auto", "sales") as client:
        arguments = {"n": 1, "release": str(release)}
        with pytest.raises(MCPError), anyio.fail_after(TIMEOUT):
            await client.call_tool("count_to", arguments, progress_callback=kill_bridge)
    await anyio.Path(f"{release}-0").touch()
