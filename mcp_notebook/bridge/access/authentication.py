"""What tells callers of the HTTP endpoint by their tokens: the owner's, named ones, and OAuth's.

Runs before the bridge's event loop serves anything.
"""

from collections.abc import Callable

from starlette.types import ASGIApp

from mcp_notebook.bridge.access.authenticator import Authenticator, Limited, OwnToken
from mcp_notebook.bridge.access.caller import Permissions
from mcp_notebook.bridge.access.named_tokens import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.settings.settings import Settings


def list_authenticators(
    settings: Settings, token: str, url: str
) -> tuple[list[Authenticator], Callable[[ASGIApp], ASGIApp]]:
    """Return what tells callers by their tokens, and what adds to the endpoint for everybody.

    Args:
        settings: The files of tokens, the one that turns OAuth on, and what callers may do at most.
        token: The owner's token.
        url: The endpoint's address.

    Raises:
        SettingsError: The file that turns OAuth on cannot be used.
    """
    tokens = NamedTokens(TokenStore(settings.tokens_file))
    authenticators: list[Authenticator] = [OwnToken(token), tokens]
    publish: Callable[[ASGIApp], ASGIApp] = _publish_nothing
    if settings.oauth_file is not None:
        from mcp_notebook.bridge.access.oauth.activation import activate_oauth  # noqa: PLC0415

        oauth = activate_oauth(settings.oauth_file, url)
        authenticators.append(Limited(oauth.authenticator, tokens.limit_others))
        publish = oauth.publish
    limits = Permissions.from_settings(settings)
    return [Limited(authenticator, lambda: limits) for authenticator in authenticators], publish


def _publish_nothing(app: ASGIApp) -> ASGIApp:
    return app
