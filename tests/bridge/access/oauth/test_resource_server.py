"""What OAuth adds to the endpoint: what a token allows, and where clients get one."""

import itertools
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest
from httpx2 import ASGITransport, AsyncClient
from hypothesis import example, given
from hypothesis import strategies as st
from oauth_issuer import serve_issuer
from starlette.responses import PlainTextResponse

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.gate import Refusal
from mcp_notebook.bridge.access.oauth import resource_server
from mcp_notebook.bridge.access.oauth.configuration import OAuthConfiguration
from mcp_notebook.bridge.access.oauth.resource_server import AccessTokens, activate_oauth
from mcp_notebook.bridge.access.oauth.signed_token_verifier import SignedTokens
from mcp_notebook.bridge.telemetry import audit_records
from mcp_notebook.errors import MissingLibrary

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]

RESOURCE = "http://127.0.0.1:8791/mcp"
CHALLENGE = 'Bearer scope="read sales all"'
READ = Permissions(read_only=True)
SALES = Permissions(tools=("sales.*",))


@pytest.fixture(scope="module")
def issuer():
    with serve_issuer() as issuer:
        yield issuer


@pytest.fixture
def authenticator(issuer):
    def make(url=issuer.url, **changed):
        scopes = {"read": {"read_only": True}, "sales": {"tools": ("sales.*",)}, "all": {}}
        configuration = OAuthConfiguration(issuer=issuer.url, scopes=scopes, **changed)
        return AccessTokens(SignedTokens(url, RESOURCE), configuration, CHALLENGE)

    return make


@pytest.mark.parametrize("installed", ["2.14.9", None])
def test_a_library_that_is_missing_or_too_old_is_named_with_its_extra(
    installed, tmp_path, monkeypatch
):
    def find_version(name):
        assert name == "pyjwt"
        if installed is None:
            raise PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(resource_server, "version", find_version)
    file = tmp_path / "oauth.toml"
    file.write_text('issuer = "https://issuer.example"\n[scopes]\nread = {}\n')
    with pytest.raises(MissingLibrary, match=r"pyjwt, version 2\.15 .* the extra 'oauth'"):
        activate_oauth(file, RESOURCE)
    file.write_text('jupyterhub = "https://hub.example"\n[scopes]\nread = {}\n')
    activate_oauth(file, RESOURCE)  # a hub's tokens are not signed


@pytest.mark.parametrize(
    ("scope", "permissions"),
    [
        ("read", READ),
        ("openid sales", SALES),
        ("read sales", Permissions(one_of=(READ, SALES))),
        ("read all", replace(EVERYTHING, names_proposals=True)),
    ],
)
async def test_a_caller_may_do_what_any_of_its_scopes_allows(
    issuer, authenticator, scope, permissions
):
    caller = await authenticator().authenticate(issuer.make_token(aud=RESOURCE, scope=scope))
    assert (caller.name, caller.alias) == (f"oauth:{issuer.url}#u-1", "alice")
    assert caller.permissions == permissions
    assert caller.owns == caller.name


NAMES = [None, "", "alice", "owner", "oauth:u-2", "bob\n\u202e", 7, ["alice"], {"a": 1}, "x" * 300]


@pytest.mark.parametrize("names", [*itertools.pairwise(NAMES)])
async def test_users_stay_who_they_are_whatever_they_call_themselves(issuer, authenticator, names):
    access = authenticator()

    async def come_as(name, **ids):
        claims = {"preferred_username": name, "name": name, "email": name, **ids}
        return await access.authenticate(issuer.make_token(aud=RESOURCE, scope="all", **claims))

    one = await come_as(names[0])
    renamed = await come_as(names[1], client_id="another")
    other = await come_as(names[0], sub="u-2")
    assert (one.name, one.owns) == (renamed.name, renamed.owns)
    assert one.name != other.name
    assert one.owns != other.owns


@given(
    st.lists(
        st.tuples(st.sampled_from(["https://a.example", "https://a.example/b"]), st.text()),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
@example([("https://a.example", "x" * 300), ("https://a.example", "x" * 301)])
@example([("https://a.example", "/b#u"), ("https://a.example/b", "u")])
def test_no_two_users_have_the_same_name_and_none_is_longer_than_the_audit_log_keeps(users):
    names = {resource_server._make_name(*user) for user in users}
    assert len(names) == 2
    assert max(map(len, names)) <= audit_records.MAX_NAME


@pytest.mark.parametrize("scope", ["", "openid", "READ", "read,sales", "readsales"])
async def test_a_token_without_such_a_scope_is_refused_with_the_scopes_to_ask_for(
    issuer, authenticator, scope
):
    refusal = await authenticator().authenticate(issuer.make_token(aud=RESOURCE, scope=scope))
    assert isinstance(refusal, Refusal)
    assert refusal.status == 403
    assert refusal.challenge == f'{CHALLENGE}, error="insufficient_scope"'


@pytest.mark.parametrize(
    ("users", "allowed"), [({"u-1", "u-2"}, True), ({"alice"}, False), ({"U-1"}, False)]
)
async def test_only_the_users_that_are_named_come_in(issuer, authenticator, users, allowed):
    answer = await authenticator(users=users).authenticate(
        issuer.make_token(aud=RESOURCE, scope="all")
    )
    assert isinstance(answer, Refusal) is not allowed
    assert allowed or answer.status == 403


async def test_somebody_elses_token_may_be_known_to_another(issuer, authenticator):
    assert await authenticator().authenticate(issuer.make_token(aud="https://a.example")) is None
    assert await authenticator().authenticate("token-of-somebody-0123456789") is None


async def test_a_good_token_is_checked_once_until_it_expires(issuer, authenticator):
    access = authenticator()
    lasting, ending = (
        issuer.make_token(aud=RESOURCE, scope="all", exp=int(time.time()) + seconds)
        for seconds in (600, -5)  # taken, because clocks may differ by that much
    )
    callers = [await access.authenticate(token) for token in (lasting, lasting, ending, ending)]
    assert callers[0] is callers[1]
    assert callers[2] == callers[3]
    assert callers[2] is not callers[3]


async def test_remembered_tokens_are_limited(issuer):
    configuration = OAuthConfiguration(issuer=issuer.url, scopes={"all": {}})
    verifier = SignedTokens(issuer.url, RESOURCE)
    access = AccessTokens(verifier, configuration, CHALLENGE, max_tokens=2)
    for number in range(5):
        await access.authenticate(issuer.make_token(aud=RESOURCE, scope="all", jti=str(number)))
    assert len(access._callers) == 2


async def test_an_issuer_that_cannot_be_asked_does_not_suggest_another_token(issuer, authenticator):
    refusal = await authenticator("http://127.0.0.1:9/").authenticate(
        issuer.make_token(aud=RESOURCE, scope="all")
    )
    assert refusal.status == 503
    assert "127.0.0.1:9" in refusal.reason


# -- where clients get a token, before they have one -----------------------------------------------

PUBLIC = "https://notebooks.example.com/team/mcp"
ADDRESS = "https://notebooks.example.com/.well-known/oauth-protected-resource/team/mcp"


@pytest.fixture
def oauth(tmp_path):
    path = tmp_path / "oauth.toml"
    path.write_text(
        f'issuer = "https://login.example.com"\nresource = "{PUBLIC}"\n'
        "[scopes.read]\nread_only = true\n[scopes.all]\n"
    )
    return activate_oauth(path, "http://127.0.0.1:8791/mcp")


@pytest.fixture
def client(oauth):
    _, publish = oauth
    app = publish(PlainTextResponse("behind it", 401))
    return AsyncClient(transport=ASGITransport(app), base_url="https://notebooks.example.com")


async def test_it_names_the_endpoint_the_issuer_and_the_scopes(client):
    answer = await client.get(ADDRESS, headers={"Origin": "https://inspector.example"})
    assert answer.json() == {
        "resource": PUBLIC,
        "authorization_servers": ["https://login.example.com"],  # exactly as it writes itself
        "scopes_supported": ["read", "all"],
        "bearer_methods_supported": ["header"],
        "resource_name": "mcp-notebook",
    }
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


async def test_a_page_of_any_origin_may_ask_for_it_with_the_header_of_the_version(client):
    asked = {
        "Origin": "https://inspector.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "mcp-protocol-version",
    }
    answer = await client.options(ADDRESS, headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "GET" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Allow-Headers"] == "mcp-protocol-version"
    assert "Content-Length" not in answer.headers


async def test_it_can_only_be_read(client):
    head = await client.head(ADDRESS)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) == len((await client.get(ADDRESS)).content)
    for method in ("POST", "PUT", "DELETE"):
        refused = await client.request(method, ADDRESS)
        assert refused.status_code == 405
        assert refused.headers["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/", "/mcp", "/.well-known/oauth-protected-resource/"])
async def test_everything_else_goes_to_the_application(client, path):
    assert (await client.get(path)).text == "behind it"


async def test_the_challenge_says_where_it_is(oauth):
    challenge = f'Bearer resource_metadata="{ADDRESS}", scope="read all"'
    access_tokens, _ = oauth
    assert access_tokens.challenge == challenge
