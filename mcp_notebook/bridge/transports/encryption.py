"""Checks that connections from other machines are encrypted, or explicitly allowed not to be.

Runs on the bridge's main thread before it listens. Without TLS, anyone on the network path can read
the token and all results. uvicorn does the encryption (`http`).
"""

import ssl

import psutil

from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings

_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared only


def check_encryption(settings: Settings) -> None:
    """Check that connections from other machines are encrypted, and that the certificate is usable.

    Raises:
        SettingsError: Encryption is neither set up nor waived, or the certificate is unusable.
    """
    if settings.certfile is None:
        if settings.keyfile is not None:
            raise SettingsError("--keyfile needs --certfile: add the certificate of the key.")
        if not is_loopback(settings.host) and not settings.insecure:
            raise SettingsError(
                f"With --host {settings.host}, other machines can connect, and anyone on the "
                "network path can read the token and all results. Add --certfile and --keyfile, or "
                "--insecure if a proxy or a tunnel encrypts the connection."
            )
        return
    for file in filter(None, (settings.certfile, settings.keyfile)):
        try:
            file.open("rb").close()
        except OSError as error:
            raise SettingsError(
                f"The file {file} cannot be read: {error.strerror}. Check --certfile and --keyfile."
            ) from None
    try:
        # Without `password`, OpenSSL would ask for one in the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.certfile, settings.keyfile, password=lambda: b""
        )
    except (OSError, ValueError) as error:
        files = f"{settings.certfile}" + (f" with {settings.keyfile}" if settings.keyfile else "")
        reason = getattr(error, "reason", None) or "it is not in PEM format"
        raise SettingsError(
            f"The certificate {files} cannot be used: {reason}. Check --certfile and --keyfile: "
            "they must be PEM files of a certificate and its key, without a password."
        ) from None


def describe_reach(settings: Settings, port: int) -> str | None:
    """Return a sentence about the addresses for other machines; None if they cannot connect."""
    if is_loopback(settings.host):
        return None
    host = settings.host.strip("[]")
    hosts = _list_addresses() if host in _WILDCARDS else [host]
    scheme = "http" if settings.certfile is None else "https"
    urls = [f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}" for host in hosts]
    places = f" ({', '.join(urls)})" if urls else ""
    risk = "without encryption" if settings.certfile is None else "with encryption"
    return f"It listens on {settings.host}:{port}: other machines can connect{places}, {risk}."


def _list_addresses() -> list[str]:
    """Return this machine's addresses, except loopback and link-local ones."""
    return sorted(
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family.name in {"AF_INET", "AF_INET6"}
        and not is_loopback(address.address)
        and "%" not in address.address
    )
