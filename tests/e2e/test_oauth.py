"""The SDK's OAuth client against a real bridge and a real issuer, in both eras."""

from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from clients import ERAS, http_bridge
from live import live_kernel
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from mcp.shared.exceptions import MCPError
from oauth_issuer import serve_issuer

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
from mcp_notebook import mcp_tool

@mcp_tool(read_only=True)
def look():
    "Look."
    return "seen"

def change():
    "Change."
    return "changed"
"""
CONFIGURATION = """issuer = "{issuer}"
[scopes."notebook:read"]
read_only = true
[scopes."notebook:all"]
"""


class Browser:
    """A user with a browser: follows the client to the issuer, which lets everybody in."""

    def __init__(self) -> None:
        self.visits = 0

    async def open(self, url):
        self.visits += 1
        async with httpx2.AsyncClient(follow_redirects=False) as http:
            answer = await http.get(url)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        self._result = AuthorizationCodeResult(
            code=query["code"][0], state=query["state"][0], iss=query.get("iss", [None])[0]
        )

    async def come_back(self):
        return self._result


class Storage:
    """What a client remembers."""

    tokens = client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


@pytest.fixture(scope="module")
def issuer():
    with serve_issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def served(module_home, issuer):
    """A bridge that trusts the issuer, with a live notebook."""
    path = module_home / "oauth.toml"
    path.write_text(CONFIGURATION.format(issuer=issuer.url))
    with live_kernel(module_home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOLS)
        with http_bridge(module_home, "--oauth-file", str(path)) as served:
            yield served


@asynccontextmanager
async def logged_in(url, era, browser):
    """Yield a client that has no token at first."""
    auth = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="assistant", redirect_uris=["http://127.0.0.1:1/callback"]),
        Storage(),
        redirect_handler=browser.open,
        callback_handler=browser.come_back,
    )
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        server = streamable_http_client(url, http_client=http)
        async with Client(server, mode=era) as client:
            yield client


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_finds_the_issuer_logs_in_and_calls_what_its_scopes_allow(
    served, issuer, era, monkeypatch
):
    monkeypatch.setattr(issuer, "allowed_scopes", {"notebook:read"})
    browser = Browser()
    async with logged_in(served.url, era, browser) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look"]
        assert (await client.call_tool("look", {})).content[0].text == "seen"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("change", {})
    assert browser.visits == 1


async def test_a_user_with_all_scopes_calls_everything(served):
    async with logged_in(served.url, "auto", Browser()) as client:
        assert (await client.call_tool("change", {})).content[0].text == "changed"


async def _post(url, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(timeout=60) as http:
        return await http.post(url, headers=headers, json={})


async def test_without_a_token_the_answer_says_where_to_get_one(served):
    answer = await _post(served.url)
    origin = served.url.removesuffix("/mcp")
    metadata = f"{origin}/.well-known/oauth-protected-resource/mcp"
    assert answer.status_code == 401
    assert f'resource_metadata="{metadata}"' in answer.headers["www-authenticate"]
    async with httpx2.AsyncClient() as http:
        assert (await http.get(metadata)).json()["resource"] == served.url


async def test_a_token_for_another_server_is_refused_and_one_without_a_scope_forbidden(
    served, issuer
):
    other = await _post(served.url, issuer.make_token(aud="https://other.example/mcp"))
    assert other.status_code == 401
    without = await _post(served.url, issuer.make_token(aud=served.url, scope="other"))
    assert without.status_code == 403
    assert 'error="insufficient_scope"' in without.headers["www-authenticate"]
    right = await _post(served.url, issuer.make_token(aud=served.url))
    assert right.status_code == 400  # it came in; the message is none
