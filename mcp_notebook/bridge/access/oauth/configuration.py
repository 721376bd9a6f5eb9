"""The file that turns OAuth on: who issues tokens, and what each scope allows.

Read once, before the bridge's event loop serves anything.
"""

import tomllib
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from mcp_notebook.bridge.access.caller import Permissions
from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.errors import SettingsError

MAX_FILE = 2**20
"""Bytes of the file."""


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("it must be a URL without a query")
    local = parts.scheme == "http" and is_loopback(parts.hostname)
    if parts.scheme != "https" and not local:
        raise ValueError("it must begin with https:// (http:// only on this machine)")
    return url


Url = Annotated[str, AfterValidator(_check_url)]


class ScopeGrant(BaseModel):
    """What a scope allows; the default is every tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tools: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    read_only: bool = False

    def to_permissions(self) -> Permissions:
        """Return it as permissions."""
        return Permissions(tools=self.tools, tags=self.tags, read_only=self.read_only)


class OAuthConfiguration(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Url | None = None
    """The issuer of signed access tokens (JWT), as it writes itself in ``iss``."""
    jupyterhub: Url | None = None
    """The address of a JupyterHub's API, such as ``https://hub.example.com/hub/api``."""
    resource: Url | None = None
    """The endpoint's address, as clients write it; tokens must be issued for it (``aud``). If not
    set, it is the address that the bridge prints."""
    audience: str | None = None
    """What ``aud`` has to name if the issuer does not know the endpoint by its address."""
    users: frozenset[str] = frozenset()
    """The only users to let in, by ``sub`` or ``preferred_username`` (JupyterHub: by name); if
    empty, everyone who has one of the scopes."""
    scopes: dict[str, ScopeGrant] = Field(min_length=1)
    """What each scope allows. A caller may do what any of its scopes allows."""

    @model_validator(mode="after")
    def _check_issuer(self) -> "OAuthConfiguration":
        if (self.issuer is None) == (self.jupyterhub is None):
            raise ValueError("write either `issuer` or `jupyterhub`")
        if self.jupyterhub is not None and (self.resource or self.audience):
            raise ValueError("tokens of a JupyterHub have no audience")
        return self


def read_configuration(path: Path) -> OAuthConfiguration:
    """Return what the file says.

    Raises:
        SettingsError: It cannot be used.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE)
        return OAuthConfiguration.model_validate(tomllib.loads(content.decode()))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(
            f"The OAuth file {path} cannot be used: {f'{place}: ' if place else ''}{reason}."
        ) from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"The OAuth file {path} cannot be used: {error}.") from None
