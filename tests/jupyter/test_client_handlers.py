"""The route of the Connect button: the clients on the server's machine, and connecting one."""

import json

import httpx2
import pytest
from jupyter_servers import HEADERS, TOKEN
from live import TIMEOUT
from tornado.httputil import HTTPHeaders

from mcp_notebook.jupyter.client_handlers import find_place

CLIENTS = "mcp-notebook/api/clients"
CURSOR = {"mcpServers": {"other": {"command": "true"}}}
HUB = {"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/"}


@pytest.fixture(scope="module")
def page(server):
    """A page of the server in a browser of the same machine."""
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False) as page:
        page.get("api/status", headers=HEADERS)
        page.get("login", params={"token": TOKEN}, follow_redirects=True)
        page.headers["X-XSRFToken"] = page.cookies.get("_xsrf")
        yield page


@pytest.fixture
def cursor(server):
    """Cursor's settings on the machine of the server."""
    file = server.home / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(CURSOR), encoding="utf-8")
    return file


def find(page, name):
    clients = page.get(CLIENTS).raise_for_status().json()["clients"]
    return next(client for client in clients if client["name"] == name)


def test_a_client_on_this_machine_is_found_and_connected_with_a_backup(page, server, cursor):
    assert page.get(CLIENTS).json()["place"] == "local"
    assert find(page, "cursor")["state"] == "none"
    assert not find(page, "windsurf")["is_found"]
    answer = page.post(CLIENTS, json={"client": "cursor"})
    assert "Connected Cursor" in answer.raise_for_status().json()["message"]
    servers = json.loads(cursor.read_text(encoding="utf-8"))["mcpServers"]
    assert servers["other"] == CURSOR["mcpServers"]["other"]
    assert servers["notebook"]["args"][-1] == "stdio"
    (backup,) = (server.home / ".mcp-notebook" / "backups").glob("*-mcp.json")
    assert json.loads(backup.read_text(encoding="utf-8")) == CURSOR
    assert find(page, "cursor")["state"] == "connected"


def test_the_entry_of_another_environment_is_replaced_only_on_demand(page, cursor):
    entry = {"command": "/old/python", "args": ["-m", "mcp_notebook", "stdio"]}
    cursor.write_text(json.dumps({"mcpServers": {"notebook": entry}}), encoding="utf-8")
    assert find(page, "cursor")["state"] == "other"
    assert page.post(CLIENTS, json={"client": "cursor"}).status_code == 409
    assert "/old/python" in cursor.read_text(encoding="utf-8")
    assert page.post(CLIENTS, json={"client": "cursor", "replace": True}).status_code == 200
    assert "/old/python" not in cursor.read_text(encoding="utf-8")


def test_settings_that_cannot_be_read_are_left_alone(page, cursor):
    cursor.write_text("{ not json", encoding="utf-8")
    client = find(page, "cursor")
    assert client["state"] == "paste"
    assert "not valid JSON" in client["problem"]
    assert '"mcpServers"' in client["text"]
    assert page.post(CLIENTS, json={"client": "cursor"}).status_code == 409
    assert cursor.read_text(encoding="utf-8") == "{ not json"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 400, "Name the client"),
        ({"client": "cursor", "file": "/etc/passwd"}, 400, "Name the client"),
        ({"client": "no-such"}, 409, "Unknown client"),
        ({"client": "windsurf"}, 409, "seems not to be installed"),
        ({"client": "mcp.json"}, 409, "mcp-notebook install mcp.json"),
    ],
)
def test_what_cannot_be_connected_says_why(page, body, status, says):
    answer = page.post(CLIENTS, json=body)
    assert answer.status_code == status
    assert says in answer.json()["message"]


def test_a_browser_elsewhere_learns_only_names_and_changes_nothing(page, cursor):
    elsewhere = {"X-Forwarded-For": "192.0.2.7"}
    answer = page.get(CLIENTS, headers=elsewhere).json()
    assert answer["place"] == "remote"
    assert {"name": "cursor", "title": "Cursor"} in answer["clients"]
    refused = page.post(CLIENTS, json={"client": "cursor"}, headers=elsewhere)
    assert refused.status_code == 403
    assert json.loads(cursor.read_text(encoding="utf-8")) == CURSOR


def test_only_pages_of_the_server_connect_clients(page, server, cursor):
    body = {"client": "cursor"}
    token = page.headers.pop("X-XSRFToken")
    assert page.post(CLIENTS, json=body).status_code == 403, "without the XSRF token"
    page.headers["X-XSRFToken"] = token
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False) as stranger:
        assert stranger.post(CLIENTS, json=body).status_code in (401, 403)
        assert stranger.get(CLIENTS).status_code == 401
    assert json.loads(cursor.read_text(encoding="utf-8")) == CURSOR


@pytest.mark.parametrize(
    ("ip", "host", "headers", "env", "place"),
    [
        ("127.0.0.1", "localhost:8888", {}, {}, "local"),
        ("::1", "[::1]:8888", {}, {}, "local"),
        ("192.0.2.7", "localhost:8888", {}, {}, "remote"),
        ("127.0.0.1", "jupyter.example.org", {}, {}, "remote"),
        ("127.0.0.1", "localhost", {"X-Forwarded-For": "192.0.2.7"}, {}, "remote"),
        ("127.0.0.1", "localhost", {"Origin": "https://jupyter.example.org"}, {}, "remote"),
        ("127.0.0.1", "localhost", {"Referer": "https://jupyter.example.org/lab"}, {}, "remote"),
        ("127.0.0.1", "localhost", {"Referer": "http://[::1"}, {}, "remote"),
        ("127.0.0.1", "localhost", {"Referer": "http://localhost:8888/lab"}, {}, "local"),
        ("127.0.0.1", "localhost:8000", {}, HUB, "JupyterHub"),
        ("10.0.0.1", "hub.example.org", {}, HUB | {"BINDER_REPO_URL": "x"}, "Binder"),
        ("0.0.0.0", "localhost", {}, {}, "remote"),  # by a Unix socket
    ],
)
def test_a_server_is_local_only_for_a_browser_on_its_machine(ip, host, headers, env, place):
    assert find_place(ip, HTTPHeaders({"Host": host, **headers}), env) == place
