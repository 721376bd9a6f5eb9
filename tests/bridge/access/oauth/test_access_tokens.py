"""What a caller may do with an access token: what any of its scopes allows."""

import time

import pytest
from oauth_issuer import serve_issuer

from mcp_notebook.bridge.access.authenticator import Refusal
from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.oauth import access_tokens
from mcp_notebook.bridge.access.oauth.access_tokens import AccessTokens
from mcp_notebook.bridge.access.oauth.configuration import OAuthConfiguration
from mcp_notebook.bridge.access.oauth.signed_tokens import SignedTokens

pytestmark = pytest.mark.anyio

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


@pytest.mark.parametrize(
    ("scope", "permissions"),
    [
        ("read", READ),
        ("openid sales", SALES),
        ("read sales", Permissions(one_of=(READ, SALES))),
        ("read all", EVERYTHING),
    ],
)
async def test_a_caller_may_do_what_any_of_its_scopes_allows(
    issuer, authenticator, scope, permissions
):
    caller = await authenticator().authenticate(issuer.make_token(aud=RESOURCE, scope=scope))
    assert caller.name == "oauth:alice"
    assert caller.permissions == permissions
    assert caller.owns == f'oauth:["{issuer.url}", "u-1", "assistant"]'


async def test_what_belongs_to_one_user_belongs_to_no_other_whatever_their_ids_look_like(
    issuer, authenticator
):
    access = authenticator()
    one, other = [
        await access.authenticate(issuer.make_token(aud=RESOURCE, scope="all", **ids))
        for ids in ({"sub": "u:1", "client_id": "c"}, {"sub": "u", "client_id": "1:c"})
    ]
    assert one.owns != other.owns


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


async def test_only_so_many_tokens_are_remembered(issuer, authenticator, monkeypatch):
    monkeypatch.setattr(access_tokens, "MAX_TOKENS", 2)
    access = authenticator()
    for number in range(5):
        await access.authenticate(issuer.make_token(aud=RESOURCE, scope="all", jti=str(number)))
    assert len(access._callers) == 2


async def test_an_issuer_that_cannot_be_asked_is_no_reason_to_get_another_token(
    issuer, authenticator
):
    refusal = await authenticator("http://127.0.0.1:9/").authenticate(
        issuer.make_token(aud=RESOURCE, scope="all")
    )
    assert refusal.status == 503
    assert "127.0.0.1:9" in refusal.reason
