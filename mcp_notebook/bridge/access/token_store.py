"""The file of named tokens: read, add, remove and rotate them.

Runs in the processes of ``mcp-notebook token`` and, for reading, in the bridge (`token_check`). The
file holds the SHA-256 of each token, not the token. A slow hash would protect passwords, which can
be guessed; a token is 256 random bits. Write access to the file grants access to the tools, so a
file that others can read or write is rejected. A lock serialises writers, and a change is atomic
for readers. A token's last use is the modification time of an empty file of its own: updating that
needs no lock.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from mcp_notebook.bridge.access.caller import Permissions
from mcp_notebook.errors import TokenError
from mcp_notebook.settings.private_files import (
    lock_private,
    make_private_folder,
    read_private_json,
    write_private_json,
)
from mcp_notebook.text.wording import suggest

MAX_TOKENS = 1_000
"""Tokens in the file; each wrong token is compared with all of them."""
MAX_FILE = 2**22
"""Size limit of the file in bytes."""
RESERVED = ("owner", "stdio")
"""Names that the log uses for callers without a named token."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_Time = Annotated[float, Meta(ge=0, le=2e11)]
"""Seconds since the epoch; calendars end not long after."""


class TokenRecord(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A token in the file. An unknown field is an error, because it may be a restriction."""

    name: Annotated[str, Meta(pattern=rf"\A{_NAME.pattern}\Z")]
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    created: _Time
    expires: _Time | None = None
    """None: never."""
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    read_only: bool = False
    exclusive: bool = False
    """Whether `tools` are hidden from all other tokens in the file."""
    is_void: bool = False
    """Whether it was voided because another user may know it."""

    def __post_init__(self) -> None:
        """Refuse an exclusive token for nothing."""
        if self.exclusive and not self.tools:
            raise ValueError("an exclusive token needs tools")

    @property
    def permissions(self) -> Permissions:
        """The tools that its caller may call, regardless of exclusive tokens."""
        return Permissions(tools=self.tools, tags=frozenset(self.tags), read_only=self.read_only)

    def has_expired(self, now: float | None = None) -> bool:
        """Return whether it is no longer valid."""
        return self.expires is not None and self.expires <= (time.time() if now is None else now)


class _Content(Struct, forbid_unknown_fields=True):
    version: Literal[1] = 1
    tokens: Annotated[tuple[TokenRecord, ...], Meta(max_length=MAX_TOKENS)] = ()


class TokenStore:
    """The file of tokens.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[TokenRecord, ...]:
        """Return all tokens, sorted by name.

        Raises:
            TokenError: The file cannot be read, or other users have access to it.
        """
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._make_error(error.strerror or str(error)) from None
        if sys.platform != "win32" and stat.S_IMODE(status.st_mode) & 0o077:
            chmod = f"chmod 600 {shlex.quote(str(self.path))}"
            raise TokenError(
                f"Other users have access to {self.path}, and may have added tokens to it. Look at "
                f"it, then run `{chmod}`, or delete it to void all tokens in it."
            )
        try:
            content = read_private_json(self.path, _Content, MAX_FILE)
        except OSError as error:
            raise self._make_error(error.strerror or str(error)) from None
        except ValueError as error:
            raise self._make_error(str(error)) from None
        if len({record.name for record in content.tokens}) != len(content.tokens):
            raise self._make_error("two tokens have the same name")
        return tuple(sorted(content.tokens, key=lambda record: record.name))

    def _make_error(self, reason: str) -> TokenError:
        return TokenError(
            f"The file of tokens {self.path} cannot be used: {reason}. Restore it from a backup, "
            "or delete it to void all tokens in it."
        )

    def add(
        self,
        name: str,
        permissions: Permissions,
        *,
        seconds: float | None = None,
        exclusive: bool = False,
    ) -> str:
        """Add a token, and return it; only its hash is stored.

        Args:
            name: The token's name.
            permissions: The tools that its caller may call.
            seconds: How long it is valid; None: forever.
            exclusive: Whether the tools are hidden from all other tokens.

        Raises:
            TokenError: The name is taken or not allowed, or the file cannot be used.
        """
        if not _NAME.fullmatch(name) or name in RESERVED:
            what = "taken by mcp-notebook itself" if name in RESERVED else "not a name for a token"
            raise TokenError(
                f"{name!r} is {what}. Use up to 64 letters, digits, dots, hyphens and underscores, "
                "beginning with a letter or a digit."
            )
        token, now = _make_token(), time.time()
        with self._change() as records:
            if any(record.name == name for record in records):
                raise TokenError(
                    f"There is a token {name!r} already. Replace it with "
                    f"`mcp-notebook token rotate {name}`, or remove it first."
                )
            if len(records) >= MAX_TOKENS:
                raise TokenError(f"There are {MAX_TOKENS:,} tokens already. Remove some first.")
            records.append(
                TokenRecord(
                    name=name,
                    sha256=hash_token(token),
                    created=now,
                    expires=None if seconds is None else now + seconds,
                    tools=permissions.tools,
                    tags=tuple(sorted(permissions.tags)),
                    read_only=permissions.read_only,
                    exclusive=exclusive,
                )
            )
        return token

    def remove(self, name: str) -> None:
        """Remove a token; it is void immediately.

        Raises:
            TokenError: There is no token of this name, or the file cannot be used.
        """
        with self._change() as records:
            record = _find(records, name)
            records.remove(record)
        self._find_use_file(record).unlink(missing_ok=True)

    def rotate(self, name: str, *, seconds: float | None = None) -> str:
        """Replace a token with a new one, and return it; the old one is void immediately.

        Args:
            name: The token's name.
            seconds: How long the new one is valid; None: as long as the old one was.

        Raises:
            TokenError: There is no token of this name, or the file cannot be used.
        """
        token, now = _make_token(), time.time()
        with self._change() as records:
            old = _find(records, name)
            if seconds is None and old.expires is not None:
                seconds = old.expires - old.created
            records[records.index(old)] = structs.replace(
                old,
                sha256=hash_token(token),
                created=now,
                expires=None if seconds is None else now + seconds,
                is_void=False,
            )
        self._find_use_file(old).unlink(missing_ok=True)
        return token

    def void_all(self) -> list[str]:
        """Void all tokens until they are rotated, and return the names of those that were valid.

        Raises:
            TokenError: The file cannot be used.
        """
        if not self.read():
            return []
        with self._change() as records:
            valid = [record for record in records if not record.is_void]
            records[:] = [structs.replace(record, is_void=True) for record in records]
        return [record.name for record in valid if not record.has_expired()]

    def note_use(self, record: TokenRecord) -> None:
        """Update a token's last use; does nothing if that cannot be written."""
        with contextlib.suppress(OSError):
            file = self._find_use_file(record)
            make_private_folder(file.parent)
            file.touch(mode=0o600)

    def find_last_use(self, record: TokenRecord) -> float | None:
        """Return when a token was last used, to a minute; None if it never was."""
        try:
            return self._find_use_file(record).lstat().st_mtime
        except OSError:
            return None

    def _find_use_file(self, record: TokenRecord) -> Path:
        return self.path.parent / "token-uses" / record.sha256[:16]

    @contextmanager
    def _change(self) -> Iterator[list[TokenRecord]]:
        """Lock the file, yield its tokens as a list to change, and write them back."""
        try:
            with lock_private(self.path.with_suffix(".lock")):
                records = list(self.read())
                yield records
                write_private_json(self.path, _Content(tokens=tuple(records)))
        except OSError as error:
            raise TokenError(
                f"The file of tokens {self.path} cannot be written: {error.strerror or error}. "
                "Fix that, or set MCP_NOTEBOOK_HOME to another folder, here and for the server."
            ) from None
        except UnicodeEncodeError:
            raise TokenError(
                "A tool or a tag has a character that is not Unicode, so nothing was changed. Type "
                "it again."
            ) from None

    def stat(self) -> tuple[int, ...] | None:
        """Return a value that changes whenever the file does; None if there is no file."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return None
        return (
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_size,
            status.st_mode,
            status.st_uid,
        )


def hash_token(token: str) -> str:
    """Return the hash of a token, as the file has it."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _make_token() -> str:
    return secrets.token_urlsafe(32)


def _find(records: Sequence[TokenRecord], name: str) -> TokenRecord:
    names = [record.name for record in records]
    if name in names:
        return records[names.index(name)]
    close = suggest(name, names)
    hint = f"did you mean {close!r}?" if close else f"tokens: {', '.join(names) or 'none'}."
    raise TokenError(f"There is no token {name!r}; {hint}")
