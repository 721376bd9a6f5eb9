"""An issuer of access tokens on this machine: the SDK's authorization server, and signed tokens.

Every user who is sent to it is alice, and is asked nothing.
"""

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from mcp.server.auth.provider import (
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

SCOPES = ["notebook:read", "notebook:named", "notebook:all", "other"]


class Issuer(OAuthAuthorizationServerProvider):
    """The issuer; keeps clients and codes in memory."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.key_id = "one"
        self.key_requests = 0
        self.key_use: str | None = "sig"
        self.keys_url = f"{url}keys"
        self.metadata = {}
        """What its metadata says in place of the truth."""
        self.allowed_scopes = set(SCOPES)
        """The scopes that alice may have, whatever her client asks for."""
        self._clients = {}
        self._codes = {}

    def make_token(self, *, key=None, algorithm="RS256", headers=None, **changed):
        """Return an access token; a claim that is changed to None is left out."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": "u-1",
            "preferred_username": "alice",
            "client_id": "assistant",
            "iat": now,
            "exp": now + 600,
            "scope": "notebook:read",
        }
        claims = {name: value for name, value in (claims | changed).items() if value is not None}
        headers = {"kid": self.key_id, "typ": "at+jwt"} | (headers or {})
        return jwt.encode(claims, key or self.key, algorithm=algorithm, headers=headers)

    def rotate_key(self) -> None:
        """Sign with a new key from now on."""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.key_id = secrets.token_hex(4)

    def list_routes(self):
        """Return the routes of its web server."""
        options = ClientRegistrationOptions(
            enabled=True, valid_scopes=SCOPES, default_scopes=["other"]
        )
        return [
            *create_auth_routes(self, AnyHttpUrl(self.url), client_registration_options=options),
            Route("/.well-known/openid-configuration", self._describe),
            Route("/keys", self._list_keys),
        ]

    async def _describe(self, _request):
        return JSONResponse({"issuer": self.url, "jwks_uri": self.keys_url} | self.metadata)

    async def _list_keys(self, _request):
        self.key_requests += 1
        key = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        key |= {"kid": self.key_id, "alg": "RS256"}
        return JSONResponse({"keys": [key | ({"use": self.key_use} if self.key_use else {})]})

    # -- what the SDK asks -------------------------------------------------------------------------

    async def get_client(self, client_id):
        return self._clients.get(client_id)

    async def register_client(self, client_info):
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            expires_at=time.time() + 60,
            client_id=client.client_id,
            scopes=params.scopes or [],
            **params.model_dump(exclude={"state", "scopes"}),
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):  # noqa: ARG002 - the SDK's
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self._codes[authorization_code.code]
        scope = " ".join(self.allowed_scopes.intersection(authorization_code.scopes))
        token = self.make_token(
            aud=authorization_code.resource, client_id=client.client_id, scope=scope
        )
        return OAuthToken(access_token=token, token_type="Bearer", expires_in=600, scope=scope)


@contextmanager
def serve_in_thread(make_app) -> Iterator[tuple[str, object]]:
    """Serve an app, made with its URL, in a thread; yield the URL and what `make_app` returned."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        content, app = make_app(url)
        # Its choice of a loop is for the whole process with uvicorn before 0.36.
        config = uvicorn.Config(app, loop="asyncio", log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield content
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def serve_issuer() -> Iterator[Issuer]:
    """Run an issuer for the block."""

    def make(url):
        issuer = Issuer(url)
        return issuer, Starlette(routes=issuer.list_routes())

    with serve_in_thread(make) as issuer:
        yield issuer
