"""``PublicUrl``: the type of a parameter for an address on the public internet.

Runs wherever a call's arguments are checked. A client that may choose an address could otherwise
make the notebook's machine ask its own network: a router, a database, a cloud's metadata service.

1. The address is parsed once, by the rules of browsers, and passed on in its normal form, so that
   no other parser reads another host in it.
2. Its host is resolved, and every IP address must be public. IPv6 addresses that contain an IPv4
   address (mapped, NAT64, 6to4) count as that one.

What fetches the address later resolves the host again and may follow redirects: that is left to the
author, and to the proxy of the machine.
"""

import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeAlias

from pydantic_core import PydanticCustomError, Url, ValidationError, core_schema

from mcp_notebook.kernel.safe.text import describe_error

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses of a host and port; raises OSError."""
RESOLVE_TIMEOUT = 10.0
"""Seconds that the system's resolver may take."""
_PORTS = {"http": 80, "https": 443}
_NAT64 = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48")))
"""Networks whose addresses end with an IPv4 address."""


class PublicUrl(str):
    """An address on the public internet, http or https, as the type of a parameter.

    ::

        def load(url: PublicUrl) -> pd.DataFrame:
            return pd.read_csv(url)

    Before the function runs, the host is resolved, and refused if one of its IP addresses is
    private, loopback, link-local, multicast or reserved. The address is checked when the argument
    comes, not when it is fetched: the name may lead elsewhere by then, and a server may redirect.
    Where that matters, fetch without redirects, through a proxy that refuses private networks.

    Args:
        text: The address.

    Raises:
        ValueError: It is not the address of a public host.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Check an address."""
        return super().__new__(cls, check_url(text))

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)  # it was checked here; a worker resolves nothing

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _core: Any, _handler: Any) -> dict[str, Any]:
        return {
            "type": "string",
            "format": "uri",
            "description": "A public web address, http or https.",
        }

    @classmethod
    def _validate(cls, value: Any) -> Self:
        if isinstance(value, cls):  # a default, or checked already
            return value
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "an address is text")
        try:
            return cls(value)
        except ValueError as error:
            raise PydanticCustomError("public_url", "{reason}", {"reason": str(error)}) from None


def check_url(text: str, resolve: Resolve | None = None) -> str:
    """Return an address in its normal form, if all IP addresses of its host are public.

    Args:
        text: The address.
        resolve: Resolves the host; None for the system's resolver.

    Raises:
        ValueError: It is not the address of a public host; says why.
    """
    url = _parse(text)
    host = url.host or ""
    try:
        addresses = (resolve or _resolve)(host, url.port or _PORTS[url.scheme])
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or describe_error(error)
        raise ValueError(f"the host {host} cannot be found ({reason}): check it") from None
    if not addresses:
        raise ValueError(f"the host {host} has no address: check it")
    if not all(map(is_public, addresses)):
        # Without the address: clients need not learn about the network.
        raise ValueError(
            f"{host} is not public, but at a private or reserved address: use a host of the public "
            "internet"
        )
    return str(url)


def _parse(text: str) -> Url:
    try:
        url = Url(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].rpartition("URL, ")[2]
        raise ValueError(f"it is not a web address ({reason}): write 'https://host/path'") from None
    if url.scheme not in _PORTS or not url.host:
        raise ValueError(f"only http and https are allowed, not {url.scheme}")
    if url.username or url.password:
        raise ValueError("an address with a user name or a password is not allowed: remove it")
    return url


def is_public(text: str) -> bool:
    """Return whether an IP address is one of the public internet.

    Args:
        text: The address, perhaps with a zone: ``fe80::1%eth0``.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _NAT64):
            return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_public(str(inner))
        if address.is_site_local or address.teredo is not None:
            return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
    )


def _resolve(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host from the system's resolver, which has no time limit."""
    future: Future[list[Any]] = Future()

    def ask() -> None:
        try:
            future.set_result(socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            future.set_exception(error)

    threading.Thread(target=ask, name="mcp-notebook resolver", daemon=True).start()
    try:
        found = future.result(RESOLVE_TIMEOUT)
    except TimeoutError:
        raise OSError(f"no answer within {RESOLVE_TIMEOUT:g} s") from None
    return [str(item[4][0]) for item in found]
