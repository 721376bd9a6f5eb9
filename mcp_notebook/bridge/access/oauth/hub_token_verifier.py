"""Verifies JupyterHub tokens with the Hub's API.

Runs on the bridge's event loop. The Hub's tokens are not signed, so the Hub is asked for a token's
user and scopes, and its answer is used for `LIFESPAN`.
"""

import re
import time

import anyio
import httpx2

from mcp_notebook.bridge.access.oauth.access_token import AccessToken
from mcp_notebook.errors import IssuerUnreachable, RemoteError
from mcp_notebook.outgoing_http import open_http_client

ASK_LIMIT = 5.0
"""Seconds that the Hub has to answer."""
LIFESPAN = 60
"""Seconds for which an answer is used. A token that the Hub revokes may be accepted for as
long."""
_MAX_QUESTIONS = 4
"""Concurrent requests to the Hub, so that a flood of wrong tokens does not flood the Hub."""
_TOKEN = re.compile(r"[\w.~+/-]+=*", re.ASCII)
"""The syntax of a bearer token (RFC 6750, section 2.1)."""
_REFUSED = (401, 403, 404)


class HubTokens:
    """Verifies the tokens of a JupyterHub.

    Args:
        api: The URL of its API.
    """

    def __init__(self, api: str) -> None:
        self._user = f"{api.rstrip('/')}/user"
        self._api = api
        self._turn = anyio.CapacityLimiter(_MAX_QUESTIONS)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the user and scopes of a token, or None if the Hub knows no user for it.

        Raises:
            IssuerUnreachable: The Hub does not answer, or its answer is not valid.
        """
        if not _TOKEN.fullmatch(token):
            return None
        headers = {"Authorization": f"Bearer {token}"}
        try:
            with anyio.fail_after(ASK_LIMIT):  # httpx2's timeout is for each read
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
            issuer=self._api, subject=name, scopes=scopes, expires=time.time() + LIFESPAN
        )
