"""The token for the remote server: from a file, a variable, or the pasted address.

Runs in the process of `mcp-notebook connect`, before anything else. There is no option for the
token itself, because every user of the machine can read a command's arguments. A token in a pasted
address is used, with a note about where to keep it instead.
"""

import os
import shlex
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.errors import TokenError
from mcp_notebook.text.terminal import print_note

_MAX_BYTES = 2**16
_OF_OTHERS = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True)
class Credentials:
    """A token and its source; without a token, requests are sent without authentication."""

    token: str | None = None
    place: str = ""
    """The source in words, without the token."""
    is_from_binder: bool = False
    """Whether it is the token of a server on Binder, which ends when it is not used."""

    def __repr__(self) -> str:
        """Show the source, not the token."""
        return f"Credentials({self.place!r})"

    @property
    def headers(self) -> dict[str, str]:
        """The Authorization header, in a form that Jupyter and JupyterHub accept."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def read_credentials(place: str | None, env: Mapping[str, str] = os.environ) -> Credentials | None:
    """Return the token that the user named; None if he named no place.

    Args:
        place: A file, or "env:VARIABLE".
        env: The environment.

    Raises:
        TokenError: There is no token in the place.
    """
    if place is None:
        return None
    kind, _, name = place.partition(":")
    if kind == "env":
        if name not in env:
            raise TokenError(
                f"The environment variable {name} is not set. Set it to the token where your "
                'client starts this command, for example in "env" of its settings.'
            )
        return _check(env[name], f"the environment variable {name}")
    return _check(_read_file(Path(place)), f"the file {place}")


def _check(text: str, place: str) -> Credentials:
    token = text.strip()
    if not token:
        raise TokenError(f"There is no token in {place}: it is empty. Write the token there.")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise TokenError(
            f"The content of {place} is not a token: a token is one word of ASCII characters. "
            "Write only the token there."
        )
    return Credentials(token, place)


def _read_file(path: Path) -> str:
    try:
        with path.expanduser().open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise TokenError(
            f"The token cannot be read from the file {path}: {error.strerror}. "
            "Write it to a file that only you can read, and name that file with --token-file."
        ) from None
    if stat.S_ISREG(mode) and mode & _OF_OTHERS and sys.platform != "win32":
        print_note(
            f"Other users of this machine can read the token in {path}. Run `chmod 600 "
            f"{shlex.quote(str(path))}`."
        )
    return text
