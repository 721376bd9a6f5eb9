"""Which endpoint is found at an address, and what is said where there is none."""

import json
import shutil
import socket
import subprocess

import pytest
from bridges import TOKEN
from endpoints import served
from web_stand_ins import discovered, web_server

from mcp_notebook.bridge.connect.addresses import read_address
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.find_endpoint import find_endpoint
from mcp_notebook.bridge.connect.remote import Remote, open_http
from mcp_notebook.errors import ConnectionLost, RemoteError, Unreachable

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]
OWNER = Credentials(TOKEN, "the file ~/x.token")
JSON = {"Content-Type": "application/json"}
NO_SESSION = (400, JSON, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600}}))


def server(answers):
    """Serve these answers, by their paths; all else is absent."""
    absent = (404, {}, "<h1>Not here</h1>")
    return web_server(lambda request: answers.get(request.path, absent))


async def find(text, credentials=OWNER):
    async with open_http() as http:
        return (await find_endpoint(http, read_address(text), credentials)).url


async def explain(text, credentials=OWNER, kind=RemoteError):
    with pytest.raises(kind) as told:
        await find(text, credentials)
    assert TOKEN not in str(told.value)
    return str(told.value)


async def test_a_bridge_is_found_at_its_endpoint_and_at_its_root(home):
    async with served(home) as here:
        assert await find(here.url) == here.url
        assert await find(here.url.removesuffix("mcp")) == here.url
        assert await find(f"{here.url}/") == here.url


async def test_a_wrong_token_or_none_is_told_with_where_to_find_one(home):
    async with served(home) as here:
        wrong = await explain(here.url, Credentials("x", "the variable X"))
        assert "does not accept the token from the variable X" in wrong
        assert "When mcp-notebook starts, it prints where its token is" in wrong
        assert "--token-file" in await explain(here.url, Credentials())


@pytest.mark.parametrize(
    ("other", "name"), [(discovered("jupyter-x"), "jupyter-x"), (NO_SESSION, "another MCP server")]
)
async def test_another_mcp_server_is_not_taken_for_a_notebook(other, name):
    """Other extensions of Jupyter serve at /mcp; those of older versions do not say their names."""
    with server({"/base/mcp": other, "/tools": other}) as url:
        for path in ("base/mcp", "tools", "base"):
            said = await explain(f"{url}/{path}")
            assert f"belongs to {name}, not to mcp-notebook." in said
            assert "ends in /mcp-notebook" in said
    ours = discovered("mcp-notebook")
    with server({"/base/mcp": other, "/base/mcp-notebook": ours}) as url:
        assert await find(f"{url}/base/mcp") == f"{url}/base/mcp-notebook"


@pytest.mark.parametrize("path", ["/base/lab", "/base", "/base/mcp"])
async def test_a_refused_token_is_told_although_another_server_is_beside_and_it_is_not_sent_there(
    path,
):
    asked = []

    def answer(request):
        asked.append(request.path)
        return (403, {}, "") if request.path == "/base/mcp-notebook" else discovered("jupyter-x")

    with web_server(answer) as url:
        said = await explain(url + path)
        assert f"{url}/base/mcp-notebook does not accept the token from the file ~/x.token" in said
    assert asked == ["/base/mcp", "/base/mcp-notebook"][-1 - path.endswith("mcp") :]


@pytest.mark.parametrize("name", ["mcp-notebook", "jupyter-x"])
async def test_a_server_that_adds_a_slash_is_asked_who_it_is_as_well(name):
    moved = (307, {"Location": "/mcp/"}, "")
    with server({"/mcp": moved, "/mcp/": discovered(name)}) as url:
        if name == "mcp-notebook":
            assert await find(f"{url}/mcp") == f"{url}/mcp/"
        else:
            assert f"{url}/mcp/ belongs to jupyter-x" in await explain(f"{url}/mcp")


async def test_a_jupyter_server_without_mcp_is_told_what_to_install():
    version = (200, JSON, json.dumps({"version": "2.17.0"}))
    with server({"/base/api": version}) as url:
        text = await explain(f"{url}/base/lab/tree/a.ipynb")
        assert f"The Jupyter server {url}/base/ has no /mcp-notebook/a.ipynb" in text
        assert "pip install -U mcp-notebook" in text


async def test_a_server_that_is_something_else_is_told_with_what_to_check():
    with server({}) as url:
        text = await explain(f"{url}/shop")
        assert f"{url}/shop/mcp-notebook is not an MCP endpoint" in text
        assert "Binder" in text


@pytest.mark.parametrize("location", ["/hub/login?next=/user/x/mcp-notebook", "/user/x/login"])
async def test_a_hub_that_wants_a_login_says_where_tokens_are_made(location):
    with server({"/user/x/mcp-notebook": (302, {"Location": location}, "")}) as url:
        text = await explain(f"{url}/user/x/lab", Credentials())
        assert "requires a token" in text
        assert f"{url}/hub/token" in text


@pytest.mark.parametrize(
    "reply", [(403, {}, "<html>"), (302, {"Location": "/hub/user/x/mcp-notebook"}, "")]
)
async def test_a_hub_that_answers_in_place_of_a_server_says_where_to_start_it(reply):
    def answer(request):
        return (
            reply
            if request.method == "POST"
            else (302, {"Location": "/hub/user/x/mcp-notebook"}, "")
        )

    with web_server(answer) as url:
        assert f"Start it in the browser, at {url}/hub/home" in await explain(f"{url}/user/x/lab")


async def test_another_address_is_not_followed():
    with server({"/mcp": (302, {"Location": "https://other.example/mcp?secret=1"}, "")}) as url:
        text = await explain(f"{url}/mcp")
        assert "redirects to https://other.example/mcp. If you trust that address" in text


async def test_a_connection_that_is_closed_is_told():
    with server({"/mcp": (None, {}, "")}) as url:
        assert "was lost before the answer" in await explain(f"{url}/mcp", kind=ConnectionLost)


async def test_a_name_that_is_not_known():
    assert "its host name cannot be resolved" in await explain(
        "https://no.invalid/mcp", kind=Unreachable
    )
    assert "cannot be used" in await explain("http://\u00b2.example/mcp")


async def test_a_server_without_tls_is_not_spoken_to_with_it():
    with server({}) as url:
        text = await explain(url.replace("http:", "https:") + "/mcp")
        assert "should begin with http://" in text


async def test_an_invalid_file_of_certificates_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    assert "Check the variables SSL_CERT_FILE" in await explain("https://localhost:1/mcp")


async def test_what_a_server_says_itself_about_an_absent_notebook_is_passed_on():
    absent = (404, JSON, '{"error": "No open notebook is called \'a\'. None is open."}')
    with server({"/user/x/mcp-notebook/a.ipynb": absent}) as url:
        text = await explain(f"{url}/user/x/lab/tree/a.ipynb")
        assert text.endswith("No open notebook is called 'a'. None is open.")


@pytest.fixture
def certificate(tmp_path):
    """A certificate of 127.0.0.1, signed by itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    certfile, keyfile = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", keyfile, "-out", certfile]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return certfile, keyfile


async def test_an_authority_of_ones_own_is_trusted_if_the_environment_says_so(
    home, certificate, monkeypatch
):
    certfile, keyfile = certificate
    async with served(home, certfile=certfile, keyfile=keyfile) as here:
        url = here.url.replace("http:", "https:")
        assert "set SSL_CERT_FILE" in await explain(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certfile))
        assert await find(url) == url


async def test_a_lost_network_is_noticed_by_the_system(home):
    async with served(home) as here, open_http() as http:
        remote = Remote(http, here.url, OWNER)
        async with remote.post(b"{}", {}) as reply:
            stream = reply._response.extensions["network_stream"]
            connection = stream.get_extra_info("socket")
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
