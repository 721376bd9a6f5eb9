"""Turns OAuth on: from its file to what the HTTP endpoint needs.

Runs before the bridge's event loop serves anything. The bridge imports it only if there is such a
file, as PyJWT and an HTTP client come with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from mcp_notebook.bridge.access.oauth.access_tokens import AccessTokens
from mcp_notebook.bridge.access.oauth.configuration import read_configuration
from mcp_notebook.bridge.access.oauth.hub_tokens import HubTokens
from mcp_notebook.bridge.access.oauth.resource_metadata import format_challenge, publish_metadata
from mcp_notebook.bridge.access.oauth.signed_tokens import SignedTokens


@dataclass(frozen=True)
class OAuth:
    """What OAuth adds to the HTTP endpoint."""

    authenticator: AccessTokens
    """For the gate."""
    publish: Callable[[ASGIApp], ASGIApp]
    """Adds what is outside the gate."""


def activate_oauth(path: Path, url: str) -> OAuth:
    """Return what the file turns on.

    Args:
        path: The file.
        url: The endpoint's address, if the file does not say how clients write it.

    Raises:
        SettingsError: The file cannot be used.
    """
    configuration = read_configuration(path)
    scopes = tuple(configuration.scopes)
    if configuration.issuer is None:
        assert configuration.jupyterhub is not None
        # A hub has no metadata that clients could follow: users copy a token from its page.
        challenge = f'Bearer scope="{" ".join(scopes)}"'
        verifier = HubTokens(configuration.jupyterhub)
        return OAuth(AccessTokens(verifier, configuration, challenge), lambda app: app)
    issuer, resource = configuration.issuer, configuration.resource or url

    def publish(app: ASGIApp) -> ASGIApp:
        return publish_metadata(app, resource=resource, issuer=issuer, scopes=scopes)

    return OAuth(
        AccessTokens(
            SignedTokens(issuer, configuration.audience or resource),
            configuration,
            format_challenge(resource, scopes),
        ),
        publish,
    )
