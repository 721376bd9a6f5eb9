"""The SDK's OAuth client against a real bridge and a real issuer, in both eras."""

import socket
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import bridges
import mcp_types as types
import pytest
from audit_lines import read_ends
from clients import ERAS, TOKEN, http_bridge, http_client, over_http, tool_kernel
from limits_files import set_limits
from listing import is_unknown, list_tools
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from oauth_issuer import serve_issuer

from mcp_notebook.bridge.access.caller import Permissions
from mcp_notebook.bridge.access.token_store import TokenStore

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

@mcp_tool(confirm=True)
def drop():
    "Drop."
    return "dropped"
"""
CONFIGURATION = """issuer = "{issuer}"
[scopes."notebook:read"]
read_only = true
[scopes."notebook:all"]
[scopes."notebook:named"]
tools = ["[a-z]*"]
"""


class Browser:
    """A user with a browser: follows the client to the issuer, which lets everybody in."""

    def __init__(self) -> None:
        self.visits = 0

    async def open(self, url):
        self.visits += 1
        async with http_client(follow_redirects=False) as http:
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
    with (
        tool_kernel(module_home, TOOLS),
        http_bridge(module_home, "--oauth-file", str(path)) as served,
    ):
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
    async with http_client(auth=auth) as http:
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
        assert [tool.name for tool in await list_tools(client)] == ["look"]
        assert (await client.call_tool("look", {})).content[0].text == "seen"
        assert is_unknown(await client.call_tool("change", {}))
    assert browser.visits == 1


@pytest.mark.smoke
async def test_a_user_with_all_scopes_calls_everything(served):
    async with logged_in(served.url, "auto", Browser()) as client:
        assert (await client.call_tool("change", {})).content[0].text == "changed"


@asynccontextmanager
async def come_as(url, issuer, sub, name, asked=None):
    """Connect a user, by what the issuer and what the user says."""

    async def answer(_context, params):
        asked.append(params.message.splitlines()[-1])
        return types.ElicitResult(action="accept", content={"answer": "Allow once"})

    token = issuer.make_token(
        aud=url, scope="notebook:all", sub=sub, preferred_username=name, client_id=f"c-{name}"
    )
    async with over_http(url, "legacy", token=token, elicitation_callback=answer) as client:
        yield client


async def test_what_users_call_themselves_changes_nothing_but_what_stands_beside_their_names(
    served, issuer, module_home, tmp_path
):
    env = set_limits(tmp_path, max_caller_calls_per_minute=20)
    asked = []
    oauth = str(module_home / "oauth.toml")
    with http_bridge(module_home, "--oauth-file", oauth, env=env) as here:
        for sub, name, tool, is_refused in [
            ("same-1", "alice", "drop", False),
            ("same-1", "owner", "change", False),
            ("same-1", "bob", "change", True),  # no new name, and no new client, calls more often
            ("same-2", "alice", "drop", False),  # nor does anybody use up what is another's
        ]:
            async with come_as(here.url, issuer, sub, name, asked) as client:
                for _ in range(19 if name == "owner" else 1):
                    result = await client.call_tool(tool, {})
                    assert result.is_error is is_refused
                assert not is_refused or "Too many calls" in result.content[0].text
    users = [f"oauth:{issuer.url}#{sub}" for sub in ["same-1"] * 21 + ["same-2"]]
    assert [line.partition(", with")[0] for line in asked] == [
        f'Asked by: "{users[0]}", called "alice"',
        f'Asked by: "{users[-1]}", called "alice"',
    ]
    log = read_ends(module_home / ".mcp-notebook" / "audit.jsonl")
    records = [record for record in log if "#same-" in record.get("caller", "")]
    assert [record["caller"] for record in records] == users
    assert [record["user"] for record in records] == ["alice", *["owner"] * 19, "bob", "alice"]


@pytest.fixture
def named_tokens(module_home):
    """Named tokens, one with a tool to itself, and the tools that each of them allows."""
    store = TokenStore(module_home / ".mcp-notebook" / "tokens.json")
    yield {
        store.add("own", Permissions(tools=("drop",)), exclusive=True): {"drop"},
        store.add("plain", Permissions()): {"look", "change"},
        store.add("reader", Permissions(read_only=True)): {"look"},
    }
    store.path.unlink()


SCOPES = {
    "notebook:all": {"look", "change", "drop"},
    "notebook:named": {"look", "change", "drop"},
    "notebook:read": {"look"},
    "none": set(),
}


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        pytest.param([], {"look", "change", "drop"}, marks=pytest.mark.slow),
        pytest.param(["--read-only"], {"look"}, marks=pytest.mark.slow),
        (["--tools", "[cd]*"], {"change", "drop"}),
        (["--read-only", "--tools", "[cd]*"], set()),
    ],
)
@pytest.mark.usefixtures("served")
async def test_a_limit_from_one_place_is_widened_by_no_other(
    issuer, module_home, named_tokens, options, offered
):
    tokens = {**named_tokens, TOKEN: {"look", "change", "drop"}}
    with http_bridge(
        module_home, "--oauth-file", str(module_home / "oauth.toml"), *options
    ) as here:
        for scope, granted in SCOPES.items():
            token = issuer.make_token(aud=here.url, scope=f"{scope} notebook:no-such")
            tokens[token] = granted - {"drop"}  # which a token keeps to itself
        for token, granted in tokens.items():
            visible = granted & offered
            if not granted:
                assert (await _post(here.url, token)).status_code == 403
                continue
            async with over_http(here.url, "auto", token=token) as client:
                assert {tool.name for tool in await list_tools(client)} == visible
                for name in {"look", "change"} - visible:
                    assert is_unknown(await client.call_tool(name, {}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["issuer", pytest.param("jupyterhub", marks=pytest.mark.slow)])
def test_a_bridge_ends_while_it_waits_for_who_issues_tokens(home, issuer, kind):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        path = home / "oauth.toml"
        path.write_text(f'{kind} = "{url}"\n[scopes.all]\n')
        with bridges.http_bridge(home, "--oauth-file", str(path)) as served:
            token = issuer.make_token(aud=served.url)
            address = urlsplit(served.url)
            with socket.create_connection((address.hostname, address.port)) as client:
                client.sendall(
                    f"POST /mcp HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 0\r\n"
                    f"Authorization: Bearer {token}\r\n\r\n".encode()
                )
                listener.settimeout(bridges.LIMIT)
                asked, _ = listener.accept()
                with asked:
                    assert asked.recv(100)
                    status, _ = served.end()
        assert status == 0
        assert "Traceback" not in served.said
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # it asked nowhere else before it ended
            listener.accept()


async def _post(url, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with http_client() as http:
        return await http.post(url, headers=headers, json={})


async def test_without_a_token_the_answer_says_where_to_get_one(served):
    answer = await _post(served.url)
    origin = served.url.removesuffix("/mcp")
    metadata = f"{origin}/.well-known/oauth-protected-resource/mcp"
    assert answer.status_code == 401
    assert f'resource_metadata="{metadata}"' in answer.headers["www-authenticate"]
    async with http_client() as http:
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
