"""Finds the caller of a bearer token: the owner, the holder of a named token, or an OAuth user.

Runs on the bridge's event loop. The gate asks each `Authenticator` of `list_authenticators` in
turn. The file of named tokens is checked for each request, which takes microseconds, and read when
it has changed: tokens that are added, removed or rotated take effect immediately. `own_token_file`
and `token_store` read and write the files.
"""

import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from mcp_notebook.bridge.access.caller import EVERYTHING, OWNER, Caller, Permissions
from mcp_notebook.bridge.access.gate import Authenticator, Refusal, is_loopback
from mcp_notebook.bridge.access.token_store import TokenRecord, TokenStore, hash_token
from mcp_notebook.bridge.asgi import ASGIApp
from mcp_notebook.errors import TokenError
from mcp_notebook.settings.settings import ErrorDetail, Settings

logger = logging.getLogger(__name__)

NOTE_INTERVAL = 60.0
"""Seconds between two updates of a token's last use."""
_NAMED = "token:"
"""Prefix of the identity of a caller with a named token, before the token's hash."""


class OwnToken:
    """The endpoint's own token, which allows everything.

    Args:
        token: The token.
    """

    challenge = "Bearer"

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def authenticate(self, token: str) -> Caller | None:
        """Return the owner if this is the token; compares in constant time."""
        return OWNER if hmac.compare_digest(token.encode("utf-8", "replace"), self._token) else None

    def has_ended(self, caller: Caller) -> bool:  # noqa: ARG002 - the token never expires
        """Return False."""
        return False


class NamedTokens:
    """The tokens of a `TokenStore`, each with permissions of its own.

    Args:
        store: The file.
    """

    challenge = "Bearer"

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self._state: object = ...
        """The file's state when it was read."""
        self._records: dict[str, TokenRecord] = {}
        """The tokens of the file, by their hash."""
        self._next_notes: dict[str, float] = {}
        """When a token's last use is to be updated next, by its hash."""
        self._hidden: tuple[str, ...] = ("*",)
        """Patterns of the tools that are hidden from everyone except the owner and the holders of
        exclusive tokens. Until the file has been read, all tools are hidden."""
        self.update()

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return the token's caller; takes equally long for every wrong token."""
        self.update()
        presented = hash_token(token)
        owner: TokenRecord | None = None
        for record in self._records.values():
            if hmac.compare_digest(record.sha256, presented):
                owner = record
        if owner is None:
            return None
        if owner.is_void:
            return Refusal(f"the token {owner.name!r} is void: another user may know it")
        if owner.has_expired():
            return Refusal(f"the token {owner.name!r} has expired")
        self._note_use(owner)
        return Caller(
            name=owner.name,
            identity=f"{_NAMED}{owner.sha256}",
            permissions=owner.permissions if owner.exclusive else self._hide(owner.permissions),
        )

    def limit_others(self) -> Permissions:
        """Return the limits for callers with neither the owner's token nor a named one."""
        self.update()
        return self._hide(EVERYTHING)

    def _hide(self, permissions: Permissions) -> Permissions:
        return replace(permissions, hidden=self._hidden)

    def _note_use(self, record: TokenRecord) -> None:
        now = time.monotonic()
        if now >= self._next_notes.get(record.sha256, now):
            self._next_notes[record.sha256] = now + NOTE_INTERVAL
            self._store.note_use(record)

    def has_ended(self, caller: Caller) -> bool:
        """Return whether a caller's token was removed or rotated, or has expired."""
        self.update()
        if not caller.identity.startswith(_NAMED):
            return False
        record = self._records.get(caller.identity.removeprefix(_NAMED))
        return record is None or record.is_void or record.has_expired()

    def update(self) -> None:
        """Read the file if it has changed. An unusable file voids all of its tokens."""
        state = self._store.stat()
        if state == self._state:
            return
        self._state = state
        try:
            records = self._store.read()
        except TokenError as error:
            # Hidden tools stay hidden from callers with other tokens, such as OAuth users.
            self._records = {}
            logger.warning("%s Until then, its tokens are refused.", error)
        else:
            self._records = {record.sha256: record for record in records}
            self._next_notes.clear()
            hidden = [pattern for each in records if each.exclusive for pattern in each.tools]
            self._hidden = tuple(dict.fromkeys(hidden))


class Limited:
    """An authenticator that limits the permissions of another one's callers.

    Args:
        authenticator: Finds the caller of a token.
        find_limits: Returns the current limits.
        errors: What the callers get of a failing tool's error; None: no change.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        find_limits: Callable[[], Permissions],
        errors: ErrorDetail | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._find_limits = find_limits
        self._errors = errors

    @property
    def challenge(self) -> str:
        """The challenge of the authenticator."""
        return self._authenticator.challenge

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return the answer of the authenticator, with limited permissions."""
        caller = await self._authenticator.authenticate(token)
        if not isinstance(caller, Caller):
            return caller
        permissions = caller.permissions.limit_to(self._find_limits())
        errors = self._errors or caller.errors
        if permissions is caller.permissions and errors == caller.errors:
            return caller
        return replace(caller, permissions=permissions, errors=errors)

    def has_ended(self, caller: Caller) -> bool:
        """Return the answer of the authenticator."""
        return self._authenticator.has_ended(caller)


def list_authenticators(
    settings: Settings, token: str, url: str
) -> tuple[list[Authenticator], Callable[[ASGIApp], ASGIApp]]:
    """Return the authenticators of an endpoint, and a wrapper that adds public pages to its app.

    Args:
        settings: The file of named tokens, the OAuth file, and the limits for all callers.
        token: The owner's token.
        url: The endpoint's URL.

    Raises:
        SettingsError: The OAuth file cannot be used.
    """
    tokens = NamedTokens(TokenStore(settings.tokens_file))
    authenticators: list[Authenticator] = [OwnToken(token), tokens]
    publish: Callable[[ASGIApp], ASGIApp] = _publish_nothing
    if settings.oauth_file is not None:
        from mcp_notebook.bridge.access.oauth.resource_server import activate_oauth  # noqa: PLC0415

        access_tokens, publish = activate_oauth(settings.oauth_file, url)
        authenticators.append(Limited(access_tokens, tokens.limit_others))
    limits = Permissions.from_settings(settings)
    errors = settings.errors or (None if is_loopback(settings.host) else "short")
    if not limits.is_everything or errors is not None:
        authenticators = [Limited(each, lambda: limits, errors) for each in authenticators]
    return authenticators, publish


def _publish_nothing(app: ASGIApp) -> ASGIApp:
    return app
