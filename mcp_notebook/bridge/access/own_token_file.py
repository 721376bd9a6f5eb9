"""The bearer token of the HTTP endpoint, and the file that keeps it from day to day.

Runs on the bridge's main thread before its event loop serves anything. Whoever could have read a
token may use the endpoint, so such a token is replaced and never kept. Who asks for it, and what is
answered without it, is the business of `access`.
"""

import contextlib
import logging
import os
import secrets
import select
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.private_files import MAX_SIZE, READ_FLAGS, is_own, make_private_folder
from mcp_notebook.settings.settings import Settings

logger = logging.getLogger(__name__)

MIN_TOKEN = 16
"""Characters. A token that mcp-notebook generates has 43 (256 bits)."""
PATIENCE = 5.0
"""Seconds for a command to write the token into the pipe that the shell made for it."""
_READ_FLAGS = READ_FLAGS & ~getattr(os, "O_NOFOLLOW", 0)


def read_token(settings: Settings, tell: Callable[[str], None] = logger.warning) -> str:
    """Return the endpoint's token: from the settings, or from its file, created if necessary.

    Args:
        settings: The token, or its file.
        tell: Gets a sentence if other users could read the file, and it has a new token.

    Raises:
        SettingsError: The token is too short to protect anything, or its file cannot be used.
    """
    if settings.token is not None:
        return _check_token(settings.token, "MCP_NOTEBOOK_TOKEN")
    path = settings.token_path
    try:
        if not path.exists():
            make_private_folder(settings.home)
            _make_token(path)
        content, status = _read_file(path)
        # Before it is replaced: another path than that of a token may be a typing error.
        token = _check_token(content.decode().strip(), str(path))
        if _is_open_to_others(status):
            token = _replace_token(path, status)
            tell(
                f"Other users could read {path}, so it has a new token now, and the old one is "
                "void. Give the new one to clients that were set up with the old one."
            )
    except (OSError, UnicodeDecodeError) as error:
        reason = str(error)
        if isinstance(error, OSError) and error.strerror:  # without its number
            other = f"{error.filename}: " if error.filename not in {None, str(path)} else ""
            reason = other + error.strerror
        raise SettingsError(
            f"The token file {path} cannot be used: {reason}. Choose another with "
            "--token-file, or another folder for all files with MCP_NOTEBOOK_HOME."
        ) from None
    return token


def renew_token(settings: Settings) -> str:
    """Put a new token in the place of one that others may have got hold of, and return it.

    Raises:
        SettingsError: It does not come from a file of the user.
    """
    path = settings.token_path
    if settings.token is not None or not path.is_file():
        raise SettingsError(
            f"The token in {settings.token_place} is not mcp-notebook's to replace: choose a new "
            "one yourself."
        )
    try:
        return _replace_token(path, path.stat())
    except OSError as error:
        raise SettingsError(f"The token in {path} cannot be replaced: {error}.") from None


def _read_file(path: Path) -> tuple[bytes, os.stat_result]:
    """Return what is in a file, and its status; waits only for a pipe of the shell's ``<(...)``.

    Raises:
        OSError: It is neither a regular file nor such a pipe, too large, or not written in time.
    """
    descriptor = os.open(path, _READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISFIFO(status.st_mode):
            if path.parent != Path("/dev/fd"):
                raise OSError("it is a pipe")
            content = _read_pipe(descriptor)
        elif stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError("it is a folder")
        elif not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        else:
            content = os.read(descriptor, MAX_SIZE + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_SIZE:
        raise OSError(f"it is larger than {MAX_SIZE:,} bytes")
    return content, status


def _read_pipe(descriptor: int) -> bytes:
    deadline = time.monotonic() + PATIENCE
    content = b""
    while len(content) <= MAX_SIZE:
        readable, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        if not readable:
            raise TimeoutError(f"nothing more came out of the pipe for {PATIENCE:g} s")
        part = os.read(descriptor, MAX_SIZE)
        if not part:
            break
        content += part
    return content


def _is_open_to_others(status: os.stat_result) -> bool:
    """Return whether users other than the owner have a part in a regular file."""
    return (
        sys.platform != "win32"  # has no such modes
        and stat.S_ISREG(status.st_mode)
        and bool(status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    )


def _replace_token(path: Path, status: os.stat_result) -> str:
    """Put a new token in the place of a known one, and return it."""
    if not is_own(status):
        raise PermissionError("it belongs to another user, who knows it")
    path = path.resolve()  # a link stays one
    temporary, token = _write_token(path)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink()
        raise
    return token


def _make_token(path: Path) -> None:
    # An existing folder keeps its mode: others may use it as well.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary, _ = _write_token(path)
    try:
        # If two bridges start at once, one of them wins, and both read its token.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink()


def _write_token(path: Path) -> tuple[Path, str]:
    """Write a new token to a temporary file beside its place, and return both."""
    token = secrets.token_urlsafe(32)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # is 0600
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return Path(temporary), token


def _check_token(token: str, source: str) -> str:
    if len(token) < MIN_TOKEN or not token.isascii() or any(c.isspace() for c in token):
        raise SettingsError(
            f"The token in {source} cannot be used: it must have at least {MIN_TOKEN} ASCII "
            "characters and no spaces. Remove it to have one generated."
        )
    return token
