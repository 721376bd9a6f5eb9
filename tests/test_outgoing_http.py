"""What a proxy of the environment gets to see of what this package sends: nothing but tunnels."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from bridges import INITIALIZE, TOKEN, bridge, http_bridge
from web_stand_ins import web_server

import mcp_notebook
from mcp_notebook.bridge.access.oauth.hub_token_verifier import HubTokens
from mcp_notebook.bridge.access.oauth.signed_token_verifier import SignedTokens
from mcp_notebook.bridge.connect.addresses import read_address
from mcp_notebook.bridge.connect.binder import launch_repository
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.find_endpoint import find_endpoint
from mcp_notebook.bridge.connect.remote import open_http
from mcp_notebook.doctor import probes
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.outgoing_http import open_http_client

pytestmark = pytest.mark.anyio

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
SIGNED = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZSJ9.e30.c2ln"
"""Has the form of a signed token, with a key's id, so that the issuer's keys are fetched."""
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
SLOW = pytest.mark.slow


@pytest.fixture
def proxy():
    """A proxy that refuses everything, and what it was asked."""
    seen = []

    def refuse(request):
        seen.append(request)
        return 502, {}, ""

    with web_server(refuse) as url:
        yield url, seen


@pytest.fixture
def environment(proxy, monkeypatch):
    """The proxy is in every variable that names one."""
    for name in VARIABLES:
        monkeypatch.setenv(name, proxy[0])
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def remote(module_home):
    """A bridge over HTTP without a notebook."""
    with http_bridge(module_home) as running:
        yield running


async def find(url):
    async with open_http() as http:
        await find_endpoint(http, read_address(f"{url}/mcp"), Credentials(TOKEN, "a file"))


async def launch(url):
    repository = read_address(f"{url}/v2/gh/ada/rain/main")
    async with open_http() as http:
        await launch_repository(http, repository, Credentials(TOKEN, "a file"), str)


CLIENTS = {
    "connect": find,
    "connect's Binder": launch,
    "the JupyterHub's API": lambda url: HubTokens(url).verify_token(TOKEN),
    "the issuer's keys": lambda url: SignedTokens(url, "x").verify_token(SIGNED),
    "the doctor's question": lambda url: probes.ask_status("GET", f"{url}/mcp", HEADERS),
}


HERE = [
    pytest.param(client, host, id=f"{name}-{host}", marks=marks)
    for name, client in CLIENTS.items()
    for host, marks in [("127.0.0.1", ()), ("localhost", () if client is find else SLOW)]
]
THERE = [
    pytest.param(client, scheme, id=f"{name}-{scheme}", marks=marks)
    for name, client in CLIENTS.items()
    for scheme, marks in [("https", ()), ("http", () if client is find else SLOW)]
]
WRONG = [
    pytest.param(client, url, id=f"{name}-{url}", marks=() if at == 0 or client is find else SLOW)
    for name, client in CLIENTS.items()
    for at, url in enumerate(["gopher://127.0.0.1:9", "http://[::", "socks5://127.0.0.1:9"])
]
"""Each client one way, and one of them all ways; the rest is slow."""


async def attempt(client, url):
    """Let a client ask an address that may not be what it looks for."""
    try:
        await client(url)
    except McpNotebookError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(("client", "host"), HERE)
async def test_this_machine_is_never_asked_through_a_proxy(client, host, proxy, environment):
    asked = []

    def note(request):
        asked.append(request)
        return 404, {}, ""

    with web_server(note) as url:
        await attempt(client, url.replace("127.0.0.1", host))
    assert asked
    assert proxy[1] == []


@pytest.mark.parametrize("host", ["[::1]", "127.0.0.1", "127.9.9.9", "localhost"])
async def test_not_even_a_tunnel_to_this_machine_is_asked_for(host, proxy, environment):
    await attempt(find, f"https://{host}:9")
    assert proxy[1] == []


@pytest.mark.parametrize(("client", "scheme"), THERE)
async def test_a_proxy_on_the_way_to_another_machine_passes_on_tunnels_only(
    client, scheme, proxy, environment
):
    await attempt(client, f"{scheme}://far.invalid")
    seen = proxy[1]
    assert bool(seen) is (scheme == "https")
    for request in seen:
        assert (request.method, request.path) == ("CONNECT", "far.invalid:443")
        assert request.body == b""
        assert not any(TOKEN in value or SIGNED in value for value in request.headers.values())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_command_connects_to_this_machine_past_a_proxy_in_its_environment(
    home, remote, proxy, host
):
    env = {"SALES_TOKEN": TOKEN} | dict.fromkeys(VARIABLES, proxy[0])
    url = remote.url.replace("127.0.0.1", host)
    words = ["connect", url, "--token-file", "env:SALES_TOKEN"]
    with bridge(home, *words, env=env, stdin=subprocess.PIPE) as running:
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["result"]["serverInfo"]["name"] == "mcp-notebook"
        running.process.stdin.close()
        assert running.wait() == 0
    assert proxy[1] == []


@pytest.mark.parametrize(("client", "url"), WRONG)
async def test_a_proxy_that_cannot_be_used_fails_what_needs_it_and_nothing_else(
    client, url, monkeypatch
):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", url)
    monkeypatch.delenv("all_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    asked = []

    def note(request):
        asked.append(request)
        return 404, {}, ""

    with web_server(note) as server:
        await attempt(client, server)
    assert asked
    if client is find:
        assert "Check HTTPS_PROXY" in await attempt(client, "https://far.invalid")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "https://far.invalid"])
async def test_certificates_that_cannot_be_read_are_named_by_their_variable(
    url, tmp_path, monkeypatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    for name, client in CLIENTS.items():
        if "doctor" not in name:
            assert "Check the variables SSL_CERT_FILE" in await attempt(client, url)


def test_no_other_module_opens_http_clients_of_its_own():
    package = Path(mcp_notebook.__file__).parent
    own = {
        package / "outgoing_http.py",
        # It asks a process that it has started itself, with `trust_env=False`.
        package / "jupyter" / "bridge_process.py",
    }
    httpx = {"Client", "AsyncClient", "get", "post", "request", "stream"}
    calls = {f"httpx2.{name}" for name in httpx} | {"AsyncClient"}
    calls |= {"jwt.PyJWKClient", "urlopen", "urllib.request.urlopen", "http.client.HTTPConnection"}
    found = []
    modules = ("httpx2", "AsyncClient", "jwt", "urllib", "urlopen", "http.client")
    for path in set(package.rglob("*.py")) - own:
        text = path.read_text(encoding="utf-8")
        if not any(module in text for module in modules):
            continue
        nodes = ast.walk(ast.parse(text))
        names = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
        found += [f"{path.relative_to(package)}: {name}" for name in names & calls]
    assert found == []


async def test_redirections_are_not_followed():
    def redirect(request):
        return (302, {"Location": "/elsewhere"}, "") if request.path == "/" else (200, {}, "")

    with web_server(redirect) as url:
        async with open_http_client(headers=HEADERS) as http:
            assert (await http.get(f"{url}/")).status_code == 302
