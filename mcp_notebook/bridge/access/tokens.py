"""Whose a bearer token is: the owner's, a named one of the file, or one that OAuth knows.

Runs on the bridge's event loop. The gate asks each `Authenticator` of `list_authenticators` in
turn. The file of named tokens is looked at for each request, which costs microseconds, and read
when it has changed: a token that was added, removed or rotated counts at once. The files themselves
are the business of `own_token_file` and `token_store`.
"""

import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from starlette.types import ASGIApp

from mcp_notebook.bridge.access.caller import EVERYTHING, OWNER, Caller, Permissions
from mcp_notebook.bridge.access.gate import Authenticator, Refusal
from mcp_notebook.bridge.access.token_store import TokenRecord, TokenStore, hash_token
from mcp_notebook.errors import TokenError
from mcp_notebook.settings.settings import Settings

logger = logging.getLogger(__name__)

NOTE_INTERVAL = 60.0
"""Seconds between two notes that a token is in use."""
_NAMED = "token:"
"""The identity of a caller with a named token begins with this; the token's hash follows."""


class OwnToken:
    """The endpoint's own token, with which its owner may do everything.

    Args:
        token: The token.
    """

    challenge = "Bearer"

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def authenticate(self, token: str) -> Caller | None:
        """Return the owner if this is the token; takes as long for every wrong one."""
        return OWNER if hmac.compare_digest(token.encode("utf-8", "replace"), self._token) else None

    def has_ended(self, caller: Caller) -> bool:  # noqa: ARG002 - the token stays
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
        """Of the file when it was read."""
        self._records: dict[str, TokenRecord] = {}
        """By the token's hash."""
        self._next_notes: dict[str, float] = {}
        """When the next use of a token is to be noted, by its hash."""
        self._hidden: tuple[str, ...] = ("*",)
        """Patterns of the tools that only the owner and the holders of exclusive tokens see. Until
        the file has been read, these are all tools."""
        self.update()

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return whose token this is; takes as long for every wrong one."""
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
            may_read_metrics=owner.metrics,
        )

    def limit_others(self) -> Permissions:
        """Return the most that callers other than the owner may do without a token of the file."""
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
        """Return whether the token of a caller was removed or rotated, or has expired."""
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
            # Hidden tools stay hidden: callers may have tokens from elsewhere.
            self._records = {}
            logger.warning("%s Until then, its tokens are refused.", error)
        else:
            self._records = {record.sha256: record for record in records}
            self._next_notes.clear()
            hidden = [pattern for each in records if each.exclusive for pattern in each.tools]
            self._hidden = tuple(dict.fromkeys(hidden))


class Limited:
    """An authenticator whose callers may do no more than certain permissions allow.

    Args:
        authenticator: Tells whose a token is.
        find_limits: Returns the permissions that apply now.
    """

    def __init__(
        self, authenticator: Authenticator, find_limits: Callable[[], Permissions]
    ) -> None:
        self._authenticator = authenticator
        self._find_limits = find_limits

    @property
    def challenge(self) -> str:
        """The challenge of the authenticator."""
        return self._authenticator.challenge

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return the answer of the authenticator, with limited permissions."""
        caller = await self._authenticator.authenticate(token)
        if not isinstance(caller, Caller):
            return caller
        limited = caller.permissions.limit_to(self._find_limits())
        return caller if limited is caller.permissions else replace(caller, permissions=limited)

    def has_ended(self, caller: Caller) -> bool:
        """Return the answer of the authenticator."""
        return self._authenticator.has_ended(caller)


def list_authenticators(
    settings: Settings, token: str, url: str
) -> tuple[list[Authenticator], Callable[[ASGIApp], ASGIApp]]:
    """Return the authenticators of an endpoint, and what wraps its app in pages for everybody.

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
        from mcp_notebook.bridge.access.oauth.resource_server import activate_oauth  # noqa: PLC0415

        oauth = activate_oauth(settings.oauth_file, url)
        authenticators.append(Limited(oauth.authenticator, tokens.limit_others))
        publish = oauth.publish
    limits = Permissions.from_settings(settings)
    if not limits.is_everything():
        authenticators = [Limited(each, lambda: limits) for each in authenticators]
    return authenticators, publish


def _publish_nothing(app: ASGIApp) -> ASGIApp:
    return app
