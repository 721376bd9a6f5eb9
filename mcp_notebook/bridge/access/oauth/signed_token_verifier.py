"""Verifies signed access tokens (JWT, RFC 9068) with the issuer's published keys.

Runs on the bridge's event loop, so that cancelling a verification also cancels its requests. PyJWT
checks signatures and claims.
"""

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt

from mcp_notebook.bridge.access.oauth.access_token import AccessToken
from mcp_notebook.bridge.access.oauth.configuration import is_protected
from mcp_notebook.errors import IssuerUnreachable, RemoteError
from mcp_notebook.outgoing_http import open_http_client

FETCH_LIMIT = 5.0
"""Seconds to fetch the issuer's metadata, or its keys."""
KEYS_LIFESPAN = 300.0
"""Seconds for which the issuer's keys are cached. A token whose key the issuer removes may be
accepted for as long."""
KEYS_PAUSE = 30.0
"""Seconds between two fetches because of an unknown key."""
FAILURE_PAUSE = 5.0
"""Seconds between two attempts to reach the issuer."""
LEEWAY = 30.0
"""Seconds that this machine's clock may differ from the issuer's."""
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Signatures with a public key. With others, anyone who can verify a token could also sign one, or
tokens are not signed at all."""
_OF_ID_TOKENS = frozenset({"nonce", "at_hash", "c_hash", "s_hash"})
"""Claims of ID tokens (OpenID Connect), which identify a user and grant no access."""


class SignedTokens:
    """Verifies the access tokens of one issuer.

    Args:
        issuer: The expected ``iss`` claim.
        audience: The expected ``aud`` claim.
        fetch_limit: Seconds to fetch the issuer's metadata, or its keys.
    """

    def __init__(self, issuer: str, audience: str, *, fetch_limit: float = FETCH_LIMIT) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys = _IssuerKeys(issuer, fetch_limit)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the content of a token that the issuer signed for this endpoint, else None.

        It expires when the token expires or the issuer's keys must be fetched again,
        whichever is sooner.

        Raises:
            IssuerUnreachable: The issuer's keys cannot be fetched.
        """
        try:
            header = jwt.get_unverified_header(token)
            key = await self._keys.find(header.get("kid"))
            claims = None if key is None else self._decode(token, key)
        except (jwt.PyJWTError, ValueError):
            return None
        if claims is None or not _is_access_token(header, claims):
            return None
        alias = claims.get("preferred_username")
        return AccessToken(
            issuer=str(claims.get("iss", "")),
            subject=str(claims["sub"]),
            alias=alias if isinstance(alias, str) else "",
            scopes=_list_scopes(claims.get("scope", claims.get("scp"))),
            expires=min(int(claims["exp"]), time.time() + self._keys.seconds_left),
        )

    def _decode(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        return jwt.decode(
            token,
            key,
            algorithms=ALGORITHMS,
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )


class _IssuerKeys:
    """The issuer's keys, fetched when needed, and only once for concurrent requests.

    Args:
        issuer: The issuer's URL.
        fetch_limit: As for `SignedTokens`.
    """

    def __init__(self, issuer: str, fetch_limit: float) -> None:
        self._issuer = issuer
        self._fetch_limit = fetch_limit
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at = -KEYS_LIFESPAN
        self._failed_at = -FAILURE_PAUSE
        self._failure = ""
        self._turn = anyio.Lock()

    @property
    def seconds_left(self) -> float:
        """Seconds until they are fetched again."""
        return self._fetched_at + KEYS_LIFESPAN - time.monotonic()

    async def find(self, key_id: object) -> jwt.PyJWK | None:
        """Return the key with an id, None if the issuer has no such key.

        Raises:
            IssuerUnreachable: The keys cannot be fetched.
        """
        if not isinstance(key_id, str):
            return None
        if self._may_be_missing(key_id):
            async with self._turn:
                if self._may_be_missing(key_id):
                    await self._fetch()
        return self._keys.get(key_id)

    def _may_be_missing(self, key_id: str) -> bool:
        return self.seconds_left < (KEYS_LIFESPAN - KEYS_PAUSE if key_id not in self._keys else 0)

    async def _fetch(self) -> None:
        if time.monotonic() - self._failed_at < FAILURE_PAUSE:
            raise IssuerUnreachable(self._issuer, self._failure)
        try:
            async with open_http_client(timeout=self._fetch_limit) as http:
                address = await self._find_keys(http)
                keys = jwt.PyJWKSet.from_dict(await self._get_object(http, address))
        except (*_FETCH_ERRORS, jwt.PyJWTError) as error:
            self._failure, self._failed_at = self._describe(error), time.monotonic()
            raise IssuerUnreachable(self._issuer, self._failure) from None
        self._fetched_at = time.monotonic()
        self._keys = {
            key.key_id: key
            for key in keys
            if key.key_id and key.public_key_use in ("sig", None)  # the others encrypt
        }

    async def _find_keys(self, http: httpx2.AsyncClient) -> str:
        """Return the URL of the issuer's keys, from its metadata.

        Raises:
            ValueError: There is no usable metadata.
        """
        parts = urlsplit(self._issuer)
        path = parts.path.rstrip("/")
        origin = f"{parts.scheme}://{parts.netloc}"
        addresses = (
            f"{origin}{path}/.well-known/openid-configuration",  # OpenID Connect Discovery
            f"{origin}/.well-known/oauth-authorization-server{path}",  # RFC 8414
        )
        problems = []
        for address in addresses:
            try:
                metadata = await self._get_object(http, address)
                if metadata["issuer"] != self._issuer:
                    problems.append(f"{address} is the metadata of {metadata['issuer']!r}")
                    continue
                keys = str(metadata["jwks_uri"])
                if is_protected(keys):
                    return keys
                problems.append(f"{address} has its keys at an address without https://")
            except _FETCH_ERRORS as error:
                problems.append(f"{address}: {self._describe(error)}")
        raise ValueError("; ".join(problems))

    async def _get_object(self, http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
        """Return the JSON object at a URL, without following redirects."""
        with anyio.fail_after(self._fetch_limit):  # httpx2's limit is for each piece of an answer
            answer = await http.get(url)
        content = answer.raise_for_status().json()
        if not isinstance(content, dict):
            raise ValueError(f"{url} is not a JSON object")  # noqa: TRY004 - as for other content
        return content

    def _describe(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._fetch_limit:g} seconds"
        return str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"


_FETCH_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, RemoteError, OSError, ValueError, LookupError)


def _is_access_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> bool:
    """Return whether a token is an access token.

    RFC 9068 declares it in the header, Keycloak in the claim ``typ``, Cognito in ``token_use``. For
    other issuers, ID tokens are recognised by their claims.
    """
    written = str(header.get("typ", "JWT")).lower().removeprefix("application/")
    kind = str(claims.get("typ", claims.get("token_use", ""))).lower()
    if written not in ("jwt", "at+jwt") or kind in ("id", "refresh", "offline", "logout"):
        return False
    is_named = written == "at+jwt" or kind in ("bearer", "access")
    return is_named or _OF_ID_TOKENS.isdisjoint(claims)


def _list_scopes(value: object) -> list[str]:
    """Return the scopes in a claim: a string with spaces between them, or a list."""
    if isinstance(value, str):
        return value.split()
    return [str(scope) for scope in value] if isinstance(value, list) else []
