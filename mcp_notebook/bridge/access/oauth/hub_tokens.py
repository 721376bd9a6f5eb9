"""Tokens of a JupyterHub, which its API tells about.

Runs on the bridge's event loop. A hub's tokens are not signed: the hub is asked whose a token is
and which scopes it has, and the answer is used for `LIFESPAN`. The SDK's ``TokenVerifier`` is the
interface.
"""

import re
import time

import anyio
import httpx2
from mcp.server.auth.provider import AccessToken, TokenVerifier

from mcp_notebook.errors import IssuerUnreachable, RemoteError
from mcp_notebook.outgoing_http import open_http_client

ASK_LIMIT = 5.0
"""Seconds for the hub to answer."""
LIFESPAN = 60
"""Seconds after which the hub is asked again: for so long a token may be good that the hub has
revoked."""
_MAX_QUESTIONS = 4
"""Questions at a time: a flood of wrong tokens must not become one of the hub."""
_TOKEN = re.compile(r"[\w.~+/-]+=*", re.ASCII)
"""What a bearer token consists of (RFC 6750, section 2.1)."""
_REFUSED = (401, 403, 404)


class HubTokens(TokenVerifier):
    """Asks a JupyterHub whose tokens are.

    Args:
        api: The address of its API.
    """

    def __init__(self, api: str) -> None:
        self._user = f"{api.rstrip('/')}/user"
        self._api = api
        self._turn = anyio.CapacityLimiter(_MAX_QUESTIONS)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose a token is if the hub knows it as a user's, else None.

        Raises:
            IssuerUnreachable: The hub does not answer, or not as a hub does.
        """
        if not _TOKEN.fullmatch(token):
            return None
        headers = {"Authorization": f"Bearer {token}"}
        try:
            with anyio.fail_after(ASK_LIMIT):  # httpx2's limit is for each piece of an answer
                async with self._turn, open_http_client(timeout=ASK_LIMIT) as client:
                    answer = await client.get(self._user, headers=headers)
            if answer.status_code in _REFUSED:
                return None
            user = answer.raise_for_status().json()
            if user["kind"] != "user":
                return None
            name, scopes = str(user["name"]), [str(scope) for scope in user["scopes"]]
        except TimeoutError:
            raise IssuerUnreachable(self._api, f"no answer within {ASK_LIMIT:g} seconds") from None
        except (httpx2.HTTPError, RemoteError, ValueError, KeyError, TypeError) as error:
            raise IssuerUnreachable(self._api, f"{type(error).__name__}: {error}") from None
        return AccessToken(
            token=token,
            client_id="jupyterhub",
            scopes=scopes,
            expires_at=int(time.time()) + LIFESPAN,
            subject=name,
            claims={"iss": self._api},
        )
