"""Finds out who uses a port: no program, the user, another user, or an outgoing connection.

Runs on the bridge's main thread before it serves anything. Another user who listens on a port that
clients were set up for gets their token; `known_ports` handles that case. A port can also be in use
without a listener, as the local end of an outgoing connection, which gets no token.
"""

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

PortUse: TypeAlias = Literal["free", "own", "foreign", "connection"]
"""Unused; listened on by a process of the user; listened on, now or soon, by anyone else; or only
the local end of a connection."""
_SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")
"""Where Linux lists the sockets of all users."""
_LISTENS = "0A"
_PROBE_LIMIT = 1.0
"""Seconds for a listener to accept a connection."""


def find_port_use(host: str, port: int) -> PortUse:
    """Return who uses a port; "foreign" if in doubt."""
    if is_free_port(host, port):
        return "free"
    if is_own_port(host, port):
        return "own"
    return "connection" if _is_connection_only(host, port) else "foreign"


def is_own_port(host: str, port: int) -> bool:
    """Return whether a process of the user listens on a port; False if in doubt."""
    addresses = _list_addresses(host)
    return bool(addresses) and any(
        _listens(process, addresses, port) for process in psutil.process_iter()
    )


def is_free_port(host: str, port: int) -> bool:
    """Return whether a port can be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def _list_addresses(host: str) -> set[str]:
    """Return the addresses on which a listener would accept connections to a host."""
    try:
        infos = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {str(info[4][0]) for info in infos} | {"0.0.0.0", "::"}  # noqa: S104 - compared


def _listens(process: psutil.Process, addresses: set[str], port: int) -> bool:
    """Return whether a process of the user listens on a port at one of the addresses."""
    try:
        if sys.platform != "win32" and process.uids().effective != os.geteuid():
            return False
        # Its name since psutil 6.
        list_connections = getattr(process, "net_connections", None) or process.connections
        connections = list_connections("tcp")
    except psutil.Error:  # it has ended, or belongs to another user
        return False
    return any(
        connection.status == psutil.CONN_LISTEN
        and connection.laddr.port == port
        and connection.laddr.ip in addresses
        for connection in connections
    )


def _is_connection_only(host: str, port: int) -> bool:
    """Return whether a used port is only the local end of connections, without a listener."""
    addresses = _list_addresses(host)
    try:
        states = {state for address, state in _list_sockets(port) if address in addresses}
    except (OSError, ValueError):  # not Linux
        return not _takes_connections(host, port)
    # A socket that is bound but does not listen yet is not in the list.
    return bool(states) and _LISTENS not in states


def _list_sockets(port: int) -> Iterator[tuple[str, str]]:
    """Yield the local address and the state of each socket on a port, as Linux lists them.

    Raises:
        OSError: There is no such list.
        ValueError: It is in another form.
    """
    for path in _SOCKETS:
        for line in Path(path).read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, _, number = local.partition(":")
            if int(number, 16) == port:
                yield _read_address(address), state


def _read_address(text: str) -> str:
    """Parse an address of 32-bit words in hexadecimal, in the machine's byte order."""
    words = (text[start : start + 8] for start in range(0, len(text), 8))
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    address = ipaddress.ip_address(packed)
    return str(getattr(address, "ipv4_mapped", None) or address)


def _takes_connections(host: str, port: int) -> bool:
    """Return whether a port accepts connections; True if in doubt."""
    try:
        with socket.create_connection((host.strip("[]"), port), _PROBE_LIMIT) as probe:
            # The system may have connected the socket to itself, if it chose this port for it.
            return bool(probe.getsockname() != probe.getpeername())
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
