"""The file that turns OAuth on: who issues tokens, and what each scope allows.

Read once, before the bridge's event loop serves anything.
"""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from mcp_notebook.bridge.access.caller import Permissions
from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.errors import SettingsError
from mcp_notebook.text.wording import suggest

MAX_FILE = 2**20
"""Size limit of the file in bytes."""


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("it must be a URL without a query")
    if not is_protected(url):
        raise ValueError("it must begin with https:// (http:// only on this machine)")
    return url


def is_protected(url: str) -> bool:
    """Return whether the connection to a URL cannot be tampered with.

    Raises:
        ValueError: It is not a URL.
    """
    parts = urlsplit(url)
    if parts.scheme == "http":
        return is_loopback(parts.hostname or "")
    return parts.scheme == "https"


Url = Annotated[str, AfterValidator(_check_url)]


class ScopeGrant(BaseModel):
    """The tools that a scope allows; all by default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tools: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    read_only: bool = False

    def to_permissions(self) -> Permissions:
        """Return the grant as permissions."""
        permissions = Permissions(tools=self.tools, tags=self.tags, read_only=self.read_only)
        return replace(permissions, names_proposals=permissions.is_everything)


class OAuthConfiguration(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Url | None = None
    """The issuer of signed access tokens (JWT), exactly as in their ``iss`` claim."""
    jupyterhub: Url | None = None
    """The URL of a JupyterHub's API, such as ``https://hub.example.com/hub/api``."""
    resource: Url | None = None
    """The endpoint's URL as clients write it; tokens must be issued for it (``aud``). By default,
    the URL that the bridge prints."""
    audience: str | None = None
    """The expected ``aud`` claim, if the issuer does not use the endpoint's URL."""
    users: frozenset[str] = frozenset()
    """The only users to admit, by ``sub``, which users cannot choose (JupyterHub: by name). If
    empty, everyone with one of the scopes."""
    scopes: dict[str, ScopeGrant] = Field(min_length=1)
    """The tools that each scope allows. A caller may call the tools of all its scopes."""

    @model_validator(mode="after")
    def _check_issuer(self) -> "OAuthConfiguration":
        if (self.issuer is None) == (self.jupyterhub is None):
            raise ValueError("write either `issuer` or `jupyterhub`")
        if self.jupyterhub is not None and (self.resource or self.audience):
            raise ValueError("tokens of a JupyterHub have no audience")
        return self


def read_configuration(path: Path) -> OAuthConfiguration:
    """Read the file.

    Raises:
        SettingsError: It cannot be used.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE)
        return OAuthConfiguration.model_validate(tomllib.loads(content.decode()))
    except ValidationError as error:
        reason = _explain(error.errors()[0])
    except OSError as error:
        reason = f"{error.strerror or error}."
    except ValueError as error:
        reason = f"it is not valid TOML: {error}."
    raise SettingsError(f"The OAuth file {path} cannot be used: {reason}")


def _explain(problem: ErrorDetails) -> str:
    """Describe a validation error and its place."""
    places = [str(place) for place in problem["loc"]]
    place = ".".join(places)
    if problem["type"] == "missing":
        return f"{place}: it is required."
    if problem["type"] == "extra_forbidden":
        model = OAuthConfiguration if len(places) == 1 else ScopeGrant
        close = suggest(places[-1], model.model_fields)
        hint = f"Did you mean {close!r}?" if close else f"Keys: {', '.join(model.model_fields)}."
        return f"{place}: there is no such key. {hint}"
    reason = problem["msg"].removeprefix("Value error, ").replace("Input should", "it must")
    return f"{place}: {reason}." if place else f"{reason}."
