"""Access tokens that an issuer has signed (JWT, RFC 9068), checked with its published keys.

Runs on the bridge's event loop, and in worker threads, where keys are fetched and signatures are
checked. PyJWT does both. The SDK's ``TokenVerifier`` is the interface.
"""

from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken, TokenVerifier

from mcp_notebook.bridge.access.oauth.configuration import is_protected
from mcp_notebook.errors import IssuerUnreachable

FETCH_LIMIT = 5.0
"""Seconds to fetch the issuer's metadata, or its keys."""
KEYS_LIFESPAN = 300.0
"""Seconds after which the issuer's keys are fetched again, at the latest."""
LEEWAY = 30.0
"""Seconds by which the clocks of this machine and of the issuer may differ."""
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
"""Signatures with a public key. Others would let whoever knows the key sign, or nobody at all."""
_MAX_CHECKS = 4
"""Tokens that are checked at a time: an issuer that does not answer must not occupy all threads."""


class SignedTokens(TokenVerifier):
    """Checks the access tokens of one issuer.

    Args:
        issuer: As it writes itself.
        audience: What the tokens must be issued for.
    """

    def __init__(self, issuer: str, audience: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys: jwt.PyJWKClient | None = None
        self._turn = anyio.CapacityLimiter(_MAX_CHECKS)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token says if the issuer has signed it for this endpoint, else None.

        Raises:
            IssuerUnreachable: The issuer's keys cannot be fetched.
        """
        if token.count(".") != 2:  # noqa: PLR2004 - header, claims, signature
            return None
        claims = await anyio.to_thread.run_sync(self._check, token, limiter=self._turn)
        if claims is None:
            return None
        scopes = claims.get("scope", claims.get("scp"))
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id", claims.get("azp", ""))),
            scopes=_list_scopes(scopes),
            expires_at=int(claims["exp"]),
            resource=self._audience,
            subject=str(claims["sub"]),
            claims=claims,
        )

    def _check(self, token: str) -> dict[str, Any] | None:
        try:
            if self._keys is None:
                self._keys = jwt.PyJWKClient(
                    self._find_keys(), lifespan=KEYS_LIFESPAN, timeout=FETCH_LIMIT
                )
            key = self._keys.get_signing_key_from_jwt(token)
            return jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWKClientConnectionError, OSError) as error:
            raise IssuerUnreachable(self._issuer, str(error)) from None
        except (jwt.PyJWTError, ValueError):
            return None

    def _find_keys(self) -> str:
        """Return where the issuer publishes its keys, which its metadata says.

        Raises:
            IssuerUnreachable: There is no such metadata.
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
                answer = httpx2.get(address, timeout=FETCH_LIMIT, follow_redirects=False)
                metadata = answer.raise_for_status().json()
                if metadata["issuer"] != self._issuer:
                    problems.append(f"{address} is the metadata of {metadata['issuer']!r}")
                    continue
                keys = str(metadata["jwks_uri"])
                if is_protected(keys):
                    return keys
                problems.append(f"{address} has its keys at an address without https://")
            except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
                problems.append(f"{address}: {type(error).__name__}: {error}")
        raise IssuerUnreachable(self._issuer, "; ".join(problems))


def _list_scopes(value: object) -> list[str]:
    """Return the scopes of a claim: a text with spaces between them, or a list."""
    if isinstance(value, str):
        return value.split()
    return [str(scope) for scope in value] if isinstance(value, list) else []
