"""The endpoint as an OAuth resource server: access tokens become callers with permissions.

Runs on the bridge's event loop; `activate_oauth` runs before it serves anything. The bridge imports
this module only if OAuth is on, because it loads PyJWT and an HTTP client.

`signed_token_verifier` or `hub_token_verifier` verifies an access token; here it becomes a caller
that may call the tools of all its scopes. Valid tokens are cached until they expire, because
clients send them with every request. Clients without a token learn where to get one from the
protected resource metadata (RFC 9728), which is public.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from packaging.version import Version

from mcp_notebook.bridge.access.caller import Caller, Permissions
from mcp_notebook.bridge.access.gate import Refusal
from mcp_notebook.bridge.access.oauth.access_token import AccessToken, TokenVerifier
from mcp_notebook.bridge.access.oauth.configuration import OAuthConfiguration, read_configuration
from mcp_notebook.bridge.access.oauth.hub_token_verifier import HubTokens
from mcp_notebook.bridge.asgi import (
    ASGIApp,
    Receive,
    Response,
    Scope,
    Send,
    make_json_response,
)
from mcp_notebook.errors import IssuerUnreachable, MissingLibrary

_LEAST_PYJWT = "2.15"
"""The extra `oauth` requires it."""
MAX_NAME = 200
"""Characters of a caller's name, as in the audit log."""
_FORBIDDEN, _UNAVAILABLE = 403, 503


class AccessTokens:
    """Finds the callers of access tokens; an `Authenticator`.

    Args:
        verifier: Verifies tokens.
        configuration: The tools of each scope, and the users to admit.
        challenge: The ``WWW-Authenticate`` header for requests without a valid token: the scheme
            and its parameters, including the scopes.
        max_tokens: Size of the LRU cache of valid tokens.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        configuration: OAuthConfiguration,
        challenge: str,
        *,
        max_tokens: int = 1_000,
    ) -> None:
        self._max_tokens = max_tokens
        self._verifier = verifier
        self._configuration = configuration
        self.challenge = challenge
        self._callers: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        """The callers and expiry times of valid tokens, by the token's hash."""

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return the token's caller, why it is refused, or None if it is not valid."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        caller, expiry = self._callers.get(digest, (None, 0.0))
        if caller is not None:
            if time.time() < expiry:
                self._callers.move_to_end(digest)
                return caller
            del self._callers[digest]
        try:
            access = await self._verifier.verify_token(token)
        except IssuerUnreachable as error:
            return Refusal(str(error), status=_UNAVAILABLE)
        if access is None:
            return None
        answer = self._admit(access)
        if isinstance(answer, Caller):
            self._callers[digest] = (answer, access.expires)
            if len(self._callers) > self._max_tokens:
                self._callers.popitem(last=False)
        return answer

    def has_ended(self, caller: Caller) -> bool:  # noqa: ARG002 - tokens expire between requests
        """Return False."""
        return False

    def _admit(self, access: AccessToken) -> Caller | Refusal:
        users = self._configuration.users
        if users and access.subject not in users:
            return Refusal(
                "its user is not one of the `users` in the OAuth file", status=_FORBIDDEN
            )
        grants = self._configuration.scopes
        allowed = [grants[scope].to_permissions() for scope in access.scopes if scope in grants]
        if not allowed:
            return Refusal(
                "its access token has none of the scopes that allow a tool",
                status=_FORBIDDEN,
                challenge=f'{self.challenge}, error="insufficient_scope"',
            )
        return Caller(
            name=_make_name(access.issuer, access.subject),
            alias=access.alias,
            permissions=Permissions.allow_any(allowed),
        )


def _make_name(issuer: str, subject: str) -> str:
    """Return the caller's name of a user; it is unique, and users cannot choose it."""
    name = f"oauth:{issuer}#{subject}"  # an issuer's address has no "#"
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    return f"{name[: MAX_NAME - len(digest) - 3]}...{digest}"


def _check_library() -> None:
    """Refuse a PyJWT that fetches the issuer's keys for every unknown key id.

    Raises:
        MissingLibrary: It is too old, or not installed.
    """
    try:
        found = Version(version("pyjwt"))
    except PackageNotFoundError:
        found = Version("0")
    if found < Version(_LEAST_PYJWT):
        library = f"pyjwt, version {_LEAST_PYJWT} or newer"
        raise MissingLibrary("Access tokens of an OAuth issuer need", library, "oauth")


def activate_oauth(path: Path, url: str) -> tuple[AccessTokens, Callable[[ASGIApp], ASGIApp]]:
    """Return what an OAuth file configures.

    Args:
        path: The file.
        url: The endpoint's URL, unless the file has `resource`.

    Returns:
        What finds the callers of access tokens, for the gate, and what adds the public metadata in
        front of the gate.

    Raises:
        SettingsError: The file cannot be used.
        MissingLibrary: Verifying its issuer's tokens needs a newer PyJWT.
    """
    configuration = read_configuration(path)
    scopes = tuple(configuration.scopes)
    if configuration.issuer is None:
        assert configuration.jupyterhub is not None
        # A JupyterHub has no such metadata: users copy a token from its page.
        challenge = f'Bearer scope="{" ".join(scopes)}"'
        verifier = HubTokens(configuration.jupyterhub)
        return AccessTokens(verifier, configuration, challenge), lambda app: app
    _check_library()
    from mcp_notebook.bridge.access.oauth.signed_token_verifier import (  # noqa: PLC0415 - of an extra
        SignedTokens,
    )

    issuer, resource = configuration.issuer, configuration.resource or url

    tokens = AccessTokens(
        SignedTokens(issuer, configuration.audience or resource),
        configuration,
        _format_challenge(resource, scopes),
    )
    return tokens, partial(_publish_metadata, resource=resource, issuer=issuer, scopes=scopes)


def _format_challenge(resource: str, scopes: Iterable[str]) -> str:
    """Return the ``WWW-Authenticate`` header for requests without a valid token."""
    return f'Bearer resource_metadata="{_find_address(resource)}", scope="{" ".join(scopes)}"'


def _publish_metadata(
    app: ASGIApp, *, resource: str, issuer: str, scopes: Iterable[str]
) -> ASGIApp:
    """Serve the metadata, and pass all other requests to the application.

    Args:
        app: The application behind the gate, with the gate.
        resource: The endpoint's URL, as clients write it.
        issuer: The issuer of tokens.
        scopes: The configured scopes.
    """
    metadata = {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": "mcp-notebook",
    }
    path = urlsplit(_find_address(resource)).path

    async def publishing_app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == path:
            await _answer_metadata(metadata, scope["method"])(scope, receive, send)
        else:
            await app(scope, receive, send)

    return publishing_app


def _answer_metadata(metadata: Mapping[str, object], method: str) -> ASGIApp:
    """Return the answer to a request for the metadata; pages of any origin may read it (CORS)."""
    headers = {"Access-Control-Allow-Origin": "*"}
    if method == "OPTIONS":
        headers |= {
            "Access-Control-Allow-Methods": "GET, OPTIONS",
            "Access-Control-Allow-Headers": "mcp-protocol-version",
        }
        return Response(status=204, headers=headers)
    if method not in ("GET", "HEAD"):
        return Response(status=405, headers={"Allow": "GET, HEAD, OPTIONS"})
    headers["Cache-Control"] = "public, max-age=3600"
    return make_json_response(metadata, headers=headers)


def _find_address(resource: str) -> str:
    """Return the address of the metadata of a resource (RFC 9728, 3.1)."""
    parts = urlsplit(resource)
    path = "" if parts.path == "/" else parts.path
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{path}"
