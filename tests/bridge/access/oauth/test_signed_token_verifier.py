"""Signed access tokens against a real issuer: which are taken, and what the others lack."""

import hmac
import json
import socket
import struct
import time
from contextlib import suppress

import anyio
import jwt
import pytest
from anyio.abc import SocketAttribute
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.utils import base64url_encode
from oauth_issuer import serve_issuer

from mcp_notebook.bridge.access.oauth import signed_token_verifier
from mcp_notebook.bridge.access.oauth.signed_token_verifier import SignedTokens
from mcp_notebook.errors import IssuerUnreachable

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]

RESOURCE = "http://127.0.0.1:8791/mcp"


@pytest.fixture(scope="module")
def issuer():
    with serve_issuer() as issuer:
        yield issuer


@pytest.fixture
def tokens(issuer):
    return SignedTokens(issuer.url, RESOURCE)


def _from_now(claims):
    """Return the claims with times, which are given in seconds from now."""
    now = int(time.time())
    times = {name: now + claims[name] for name in ("exp", "nbf") if claims.get(name) is not None}
    return claims | times


@pytest.mark.smoke
async def test_a_token_for_this_endpoint_tells_its_user_issuer_and_scopes(issuer, tokens):
    access = await tokens.verify_token(issuer.make_token(aud=RESOURCE, scope="a b"))
    assert (access.subject, access.issuer, access.scopes) == ("u-1", issuer.url, ["a", "b"])
    assert access.expires > time.time()


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": [RESOURCE, "https://other.example"]},
        {"aud": RESOURCE, "scope": None, "scp": ["a"]},
        {"aud": RESOURCE, "exp": -10},  # clocks differ by that much
        {"aud": RESOURCE, "client_id": None, "azp": "assistant"},
    ],
)
async def test_forms_of_various_issuers_are_taken(issuer, tokens, claims):
    token = issuer.make_token(**_from_now(claims))
    assert (await tokens.verify_token(token)).subject == "u-1"


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [({"scope": ["a", "b"]}, ["a", "b"]), ({"scope": 7}, []), ({"scope": None, "scp": {}}, [])],
)
async def test_scopes_are_a_text_or_a_list_and_all_else_is_none(issuer, tokens, claims, scopes):
    access = await tokens.verify_token(issuer.make_token(aud=RESOURCE, **claims))
    assert access.scopes == scopes


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://other.example/mcp"},
        {"aud": f"{RESOURCE}/more"},
        {"aud": []},
        {},
        {"aud": RESOURCE, "iss": "https://other.example/"},
        {"aud": RESOURCE, "iss": None},
        {"aud": RESOURCE, "exp": -600},
        {"aud": RESOURCE, "exp": None},
        {"aud": RESOURCE, "nbf": 600},
        {"aud": RESOURCE, "sub": None},
    ],
)
async def test_a_token_of_or_for_others_or_of_another_time_is_none(issuer, tokens, claims):
    assert await tokens.verify_token(issuer.make_token(**_from_now(claims))) is None


@pytest.mark.parametrize(("use", "is_taken"), [("sig", True), (None, True), ("enc", False)])
async def test_a_key_that_the_issuer_encrypts_with_checks_no_signatures(
    issuer, tokens, monkeypatch, use, is_taken
):
    monkeypatch.setattr(issuer, "key_use", use)
    token = issuer.make_token(aud=RESOURCE)
    assert (await tokens.verify_token(token) is not None) is is_taken


def _sign_with_public_key(issuer, claims):
    """Sign with what everybody can fetch, in the hope that it is taken for a shared secret."""
    header = {"alg": "HS256", "typ": "JWT", "kid": issuer.key_id}
    body = f"{base64url_encode(json.dumps(header).encode()).decode()}.{claims}"
    public = issuer.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signature = hmac.digest(public, body.encode(), "sha256")
    return f"{body}.{base64url_encode(signature).decode()}"


async def test_a_token_that_the_issuer_has_not_signed_is_none(issuer, tokens):
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    good = issuer.make_token(aud=RESOURCE)
    head, claims, signature = good.split(".")
    forged = [
        issuer.make_token(aud=RESOURCE, key=stranger),
        jwt.encode({"aud": RESOURCE}, None, algorithm="none", headers={"kid": issuer.key_id}),
        _sign_with_public_key(issuer, claims),
        f"{head}.{claims}.{signature[:-4]}AAAA",
        f"{head}.{claims}.",
        f"{head}..{signature}",
        "a.b.c",
        "....",
        "not-a-token",
    ]
    assert [await tokens.verify_token(token) for token in forged] == [None] * len(forged)
    assert await tokens.verify_token(good) is not None


async def test_a_new_key_of_the_issuer_is_fetched_once_and_made_up_ones_fetch_nothing(
    issuer, tokens
):
    await tokens.verify_token(issuer.make_token(aud=RESOURCE))
    requests = issuer.key_requests
    for number in range(50):
        await tokens.verify_token(issuer.make_token(aud=RESOURCE, headers={"kid": str(number)}))
    assert issuer.key_requests <= requests + 1
    issuer.rotate_key()
    fresh = SignedTokens(issuer.url, RESOURCE)
    assert await fresh.verify_token(issuer.make_token(aud=RESOURCE)) is not None


async def test_an_issuer_that_is_not_there_or_another_one_is_said_to_be_unreachable(issuer):
    token = issuer.make_token(aud=RESOURCE)
    for url in ("http://127.0.0.1:9/", f"{issuer.url}realm"):
        with pytest.raises(IssuerUnreachable, match=r"127\.0\.0\.1"):
            await SignedTokens(url, RESOURCE).verify_token(token)


@pytest.mark.parametrize("url", ["http://keys.example/keys", "ftp://keys.example/keys", "http:"])
async def test_keys_that_somebody_on_the_way_could_change_are_not_fetched(issuer, monkeypatch, url):
    monkeypatch.setattr(issuer, "keys_url", url)
    with pytest.raises(IssuerUnreachable, match="its keys at an address without https://"):
        await SignedTokens(issuer.url, RESOURCE).verify_token(issuer.make_token(aud=RESOURCE))


@pytest.mark.parametrize(
    "told",
    [
        lambda url: url.rstrip("/"),
        lambda url: f"{url}/",
        lambda url: url.replace("http", "HTTP"),
        lambda url: url.replace("127.0.0.1", "localhost"),
        lambda url: f"{url}realm",
        lambda _: "https://other.example",
        lambda _: "",
        lambda _: None,
        lambda url: [url],
    ],
)
async def test_metadata_of_another_issuer_says_nothing_about_this_one(issuer, monkeypatch, told):
    monkeypatch.setitem(issuer.metadata, "issuer", told(issuer.url))
    requests = issuer.key_requests
    with pytest.raises(IssuerUnreachable, match="is the metadata of"):
        await SignedTokens(issuer.url, RESOURCE).verify_token(issuer.make_token(aud=RESOURCE))
    assert issuer.key_requests == requests


ACCESS, ID = {"typ": "at+jwt"}, {"typ": "JWT"}


@pytest.mark.parametrize(
    ("headers", "claims", "is_taken"),
    [
        (ACCESS, {}, True),
        ({"typ": "application/at+JWT"}, {}, True),
        (ID, {}, True),
        (None, {}, True),
        (ID, {"typ": "Bearer", "nonce": "n"}, True),  # Keycloak before 24
        (ID, {"token_use": "access"}, True),
        (ID, {"nonce": "n"}, False),
        (ID, {"at_hash": "h"}, False),
        (ID, {"c_hash": "h"}, False),
        (ID, {"typ": "ID"}, False),
        (ID, {"typ": "Refresh"}, False),
        (ID, {"typ": "Offline"}, False),
        (ID, {"typ": "Logout"}, False),
        (ID, {"token_use": "id"}, False),
        (ACCESS, {"typ": "ID"}, False),
        ({"typ": "logout+jwt"}, {}, False),
        ({"typ": "dpop+jwt"}, {}, False),
        ({"typ": 7}, {}, False),
    ],
)
async def test_only_access_tokens_are_taken_whatever_else_the_issuer_signs_for_this_endpoint(
    issuer, tokens, headers, claims, is_taken
):
    token = issuer.make_token(aud=RESOURCE, headers=headers, **claims)
    assert (await tokens.verify_token(token) is not None) is is_taken


@pytest.mark.parametrize("exp", [10**18, 10**400, 2**63, "99999999999"])
async def test_a_token_is_checked_again_once_the_keys_are_old_however_long_it_lives(
    issuer, tokens, exp
):
    access = await tokens.verify_token(issuer.make_token(aud=RESOURCE, exp=exp))
    assert access.expires <= time.time() + signed_token_verifier.KEYS_LIFESPAN


@pytest.mark.parametrize("exp", [float("inf"), float("nan"), "soon", [1], True, -(10**18)])
async def test_an_invalid_time_is_refused(issuer, tokens, exp):
    assert await tokens.verify_token(issuer.make_token(aud=RESOURCE, exp=exp)) is None


async def test_a_key_that_the_issuer_has_removed_is_good_until_its_keys_are_fetched_again(
    issuer, tokens
):
    token = issuer.make_token(aud=RESOURCE, exp=10**18)
    assert await tokens.verify_token(token) is not None
    issuer.rotate_key()
    assert await tokens.verify_token(token) is not None
    tokens._keys._fetched_at -= signed_token_verifier.KEYS_LIFESPAN  # as if its time were over
    assert await tokens.verify_token(token) is None


@pytest.mark.slow
@pytest.mark.parametrize("hanging", ["metadata", "keys"])
@pytest.mark.parametrize("is_dripping", [False, True])
async def test_an_issuer_that_never_ends_its_answer_is_given_up_once_for_all_who_wait(
    issuer, monkeypatch, hanging, is_dripping
):
    connections = 0

    async def hang(connection):
        nonlocal connections
        connections += 1
        async with connection:
            await connection.receive()
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
            with suppress(anyio.BrokenResourceError):  # it has hung up
                while is_dripping:
                    await connection.send(b" ")
                    await anyio.sleep(0.01)
            await anyio.sleep_forever()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/"
    monkeypatch.setattr(issuer, "keys_url", url)
    tokens = SignedTokens(url if hanging == "metadata" else issuer.url, RESOURCE, fetch_limit=0.2)
    token = issuer.make_token(aud=RESOURCE)
    reasons = []

    async def ask():
        with pytest.raises(IssuerUnreachable) as told:
            await tokens.verify_token(token)
        reasons.append(str(told.value))

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, hang)
        async with anyio.create_task_group() as askers:
            for _ in range(20):
                askers.start_soon(ask)
        tasks.cancel_scope.cancel()
    assert len(reasons) == 20
    assert all("no answer within 0.2 seconds" in reason for reason in reasons)
    assert connections == (2 if hanging == "metadata" else 1)  # there are two places for metadata


async def test_an_issuer_that_resets_the_connection_is_unreachable(issuer, monkeypatch):
    async def reset(connection):
        async with connection:
            await connection.receive()
            raw = connection.extra(SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    monkeypatch.setattr(issuer, "keys_url", f"http://127.0.0.1:{port}/keys")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, reset)
        with pytest.raises(IssuerUnreachable):
            await SignedTokens(issuer.url, RESOURCE).verify_token(issuer.make_token(aud=RESOURCE))
        tasks.cancel_scope.cancel()
