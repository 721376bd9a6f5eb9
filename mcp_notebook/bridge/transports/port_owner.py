"""Finds out who uses a port: no program, the user, or another user.

Runs on the bridge's main thread before it serves anything. Another user who listens on a port that
clients were set up for gets their token; `known_ports` handles that case.
"""

import errno
import os
import socket
import sys
from typing import Literal, TypeAlias

import psutil

PortUse: TypeAlias = Literal["free", "own", "foreign"]
"""Unused; listened on by a process of the user; or used by anyone else."""


def find_port_use(host: str, port: int) -> PortUse:
    """Return who uses a port; "foreign" if in doubt."""
    if is_free_port(host, port):
        return "free"
    return "own" if is_own_port(host, port) else "foreign"


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
