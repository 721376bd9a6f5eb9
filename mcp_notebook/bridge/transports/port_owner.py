"""Whether a port is in use, and then in the hands of the user, or perhaps of another one.

Runs on the bridge's main thread before it serves anything. Another user who listens on a port that
clients were set up for gets their token; what to do then is the business of `known_ports`.
"""

import errno
import os
import socket
import sys

import psutil


def is_own_port(host: str, port: int) -> bool:
    """Return whether a process of the user listens on a port; False if that is not certain."""
    try:
        infos = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = {str(info[4][0]) for info in infos} | {"0.0.0.0", "::"}  # noqa: S104 - compared
    return any(_listens(process, addresses, port) for process in psutil.process_iter())


def is_free_port(host: str, port: int) -> bool:
    """Return whether nobody listens on a port, as far as one can tell."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def _listens(process: psutil.Process, addresses: set[str], port: int) -> bool:
    """Return whether a process is the user's and listens on a port at one of these addresses."""
    try:
        if sys.platform != "win32" and process.uids().effective != os.geteuid():
            return False
        # psutil 6 has given it this name.
        list_connections = getattr(process, "net_connections", None) or process.connections
        connections = list_connections("tcp")
    except psutil.Error:  # it has ended, or it is another user's
        return False
    return any(
        connection.status == psutil.CONN_LISTEN
        and connection.laddr.port == port
        and connection.laddr.ip in addresses
        for connection in connections
    )
