"""The callers who have a token of their own: `TokenStore`'s file as an `Authenticator`.

Runs on the bridge's event loop. The file is looked at for each request, which costs microseconds,
and read when it has changed: a token that was added, removed or rotated counts at once.
"""

import hmac
import logging
import time
from dataclasses import replace

from mcp_notebook.bridge.access.authenticator import Refusal
from mcp_notebook.bridge.access.caller import EVERYTHING, Caller, Permissions
from mcp_notebook.bridge.access.token_store import TokenRecord, TokenStore, hash_token
from mcp_notebook.errors import TokenError

logger = logging.getLogger(__name__)

NOTE_INTERVAL = 60.0
"""Seconds between two notes that a token is in use."""
_PREFIX = "token:"
"""What the identity of such a caller begins with; the token's hash follows."""


class NamedTokens:
    """Tells whose a token of the file is.

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
        """What tokens keep to themselves: patterns of tools that no other caller sees, but for the
        owner. Until the file could be read: everything."""
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
            identity=f"{_PREFIX}{owner.sha256}",
            permissions=owner.permissions if owner.exclusive else self._hide(owner.permissions),
            may_read_metrics=owner.metrics,
        )

    def limit_others(self) -> Permissions:
        """Return what callers may do at most who have no token of the file, but for the owner."""
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
        if not caller.identity.startswith(_PREFIX):
            return False
        record = self._records.get(caller.identity.removeprefix(_PREFIX))
        return record is None or record.is_void or record.has_expired()

    def update(self) -> None:
        """Read the file if it has changed. One that cannot be used voids all of its tokens."""
        state = self._store.stat()
        if state == self._state:
            return
        self._state = state
        try:
            records = self._store.read()
        except TokenError as error:
            # What was hidden stays hidden: there may be tokens that are not of the file.
            self._records = {}
            logger.warning("%s Until then, its tokens are refused.", error)
        else:
            self._records = {record.sha256: record for record in records}
            self._next_notes.clear()
            hidden = [pattern for each in records if each.exclusive for pattern in each.tools]
            self._hidden = tuple(dict.fromkeys(hidden))
