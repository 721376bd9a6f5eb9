"""The ports that clients were set up for, and the response when another user listens on one.

Runs on the bridge's main thread before it serves anything. A client sends its token to any program
that listens on its port, so a token is replaced when another user listens on a port that it was
served on. Two of the user's files remember the ports: the port to use again (``port``), and the
ports of each token (``ports``, with a hash of the token). `port_owner` finds out who owns a port.
"""

import contextlib
from collections.abc import Sequence

from mcp_notebook.bridge.access.own_token_file import renew_token
from mcp_notebook.bridge.access.token_store import TokenStore, hash_token
from mcp_notebook.bridge.transports.port_owner import PortUse, find_port_use
from mcp_notebook.errors import SettingsError, TokenError
from mcp_notebook.settings.private_files import read_private, write_private
from mcp_notebook.settings.settings import Settings

MAX_PORTS = 20
"""Number of ports that are remembered, the latest ones."""
_USERS: dict[PortUse, str] = {
    "own": "by another process of yours",
    "free": "by a process that is ending",
}


def read_last_port(settings: Settings) -> int | None:
    """Return the port to use again, or None."""
    try:
        return _parse_port(read_private(settings.home / "port"))
    except OSError:
        return None


def write_last_port(settings: Settings, port: int) -> None:
    """Remember the port to use again."""
    write_private(settings.home / "port", str(port))


def remember_port(settings: Settings, token: str, port: int) -> None:
    """Remember that clients may be set up for this port with this token.

    Does nothing if the system chooses a new port at each start: nobody relies on such a port, and
    other programs soon get it.
    """
    if settings.port == 0:
        return
    entry = f"{hash_token(token)} {port}".encode()
    others = [line for line in _read_lines(settings) if line != entry]
    with contextlib.suppress(OSError):  # the bridge also works without a home
        content = b"\n".join([*others, entry][-MAX_PORTS:])
        write_private(settings.home / "ports", content.decode("ascii", "replace"))


def choose_token(
    settings: Settings, token: str, port: int, *, usual: int, notices: list[str]
) -> str:
    """Return the token for a port: a new token if clients may send the old one to another user.

    The port is remembered with the token.

    Args:
        settings: The address, and the source of the token.
        token: The current token.
        port: The port that this bridge listens on.
        usual: The port that clients expect.
        notices: Receives a sentence about each change for clients.

    Raises:
        SettingsError: The token may become known to another user, and cannot be replaced.
    """
    others = {usual, *_read_ports(settings, token)} - {port}
    uses = {other: find_port_use(settings.host, other) for other in sorted(others)}
    foreign = [other for other, use in uses.items() if use == "foreign"]
    if foreign:
        token = _renew_token(settings, foreign, port, usual=usual, notices=notices)
    elif usual != port:
        by = _USERS[uses[usual]]
        notices.append(f"Port {usual} is in use {by}, so this one has port {port}.")
    remember_port(settings, token, port)
    return token


def _renew_token(
    settings: Settings, foreign: Sequence[int], port: int, *, usual: int, notices: list[str]
) -> str:
    threat = (
        f"Port {foreign[0]} is in use, but not by you: clients that were set up for it send your "
        "token to that program."
    )
    try:
        token = renew_token(settings)
    except SettingsError as error:
        remedy = " Then choose another port with --port." if usual in foreign else ""
        raise SettingsError(f"{threat} {error}{remedy}") from None
    notices.append(
        f"{threat} So this one has port {port} and a new token: set up your clients again. On a "
        "machine that you share, prefer `mcp-notebook stdio`, which needs neither."
    )
    if usual != port:
        write_last_port(settings, port)
    with contextlib.suppress(TokenError):  # an unreadable file grants no access
        names = TokenStore(settings.tokens_file).void_all()
        if names:
            notices.append(
                f"The tokens of other clients are also void: {', '.join(names)}. Make new ones "
                "with `mcp-notebook token rotate NAME`."
            )
    return token


def _read_ports(settings: Settings, token: str) -> set[int]:
    hashed = hash_token(token).encode()
    entries = [line.partition(b" ") for line in _read_lines(settings)]
    ports = {_parse_port(port) for of, _, port in entries if of == hashed}
    return {port for port in ports if port is not None}


def _read_lines(settings: Settings) -> list[bytes]:
    try:
        return read_private(settings.home / "ports").splitlines()
    except OSError:
        return []


def _parse_port(text: bytes) -> int | None:
    """Return the port in a part of a file, which may contain anything."""
    try:
        port = int(text)
    except ValueError:
        return None
    return port if 0 < port < 2**16 else None
