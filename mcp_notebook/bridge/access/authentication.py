"""What tells callers of the HTTP endpoint by their tokens: the owner's, named ones, and OAuth's.

Tested in ``tests/e2e/test_oauth.py``. Runs before the bridge's event loop serves anything.
"""

from collections.abc import Callable

from starlette.types import ASGIApp

from mcp_notebook.bridge.access.authenticator import Authenticator, Limited, OwnToken
from mcp_notebook.bridge.access.named_tokens import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.settings import Settings


def list_authenticators(
    settings: Settings, token: str, url: str
) -> tuple[list[Authenticator], Callable[[ASGIApp], ASGIApp]]:
    """Return what tells callers by their tokens, and what adds to the endpoint for everybody.

    Args:
        settings: The files of tokens, and the one that turns OAuth on.
        token: The owner's token.
        url: The endpoint's address.

    Raises:
        SettingsError: The file that turns OAuth on cannot be used.
    """
    tokens = NamedTokens(TokenStore(settings.tokens_file))
    authenticators: list[Authenticator] = [OwnToken(token), tokens]
    if settings.oauth_file is None:
        return authenticators, lambda app: app
    from mcp_notebook.bridge.access.oauth.activation import activate_oauth  # noqa: PLC0415

    oauth = activate_oauth(settings.oauth_file, url)
    return [*authenticators, Limited(oauth.authenticator, tokens.limit_others)], oauth.publish
