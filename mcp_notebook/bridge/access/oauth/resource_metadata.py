"""Tells clients where they get a token for this endpoint (RFC 9728), before they have one.

Runs on the bridge's event loop, outside the gate: everybody may read it, browsers included.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from mcp.server.auth.handlers.metadata import ProtectedResourceMetadataHandler
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp, Receive, Scope, Send


def format_challenge(resource: str, scopes: Iterable[str]) -> str:
    """Return what ``WWW-Authenticate`` says to clients without a right token."""
    return f'Bearer resource_metadata="{_find_address(resource)}", scope="{" ".join(scopes)}"'


def publish_metadata(app: ASGIApp, *, resource: str, issuer: str, scopes: Iterable[str]) -> ASGIApp:
    """Answer requests for the metadata; everything else goes to the application.

    Args:
        app: The application, which begins with the gate.
        resource: The endpoint's address, as clients write it.
        issuer: Who issues tokens.
        scopes: The scopes that allow anything.
    """
    # From texts: a URL object would add a slash to an issuer without a path, and clients compare.
    metadata = ProtectedResourceMetadata.model_validate(
        {
            "resource": resource,
            "authorization_servers": [issuer],
            "scopes_supported": list(scopes),
            "resource_name": "mcp-notebook",
        }
    )
    answer = cors_middleware(ProtectedResourceMetadataHandler(metadata).handle, ["GET", "OPTIONS"])
    path = urlsplit(_find_address(resource)).path

    async def publishing_app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == path:
            await answer(scope, receive, send)
        else:
            await app(scope, receive, send)

    return publishing_app


def _find_address(resource: str) -> str:
    return str(build_resource_metadata_url(AnyHttpUrl(resource)))
