"""``PublicUrl``: the type of a parameter for an address on the public internet.

Runs wherever a call's arguments are checked, and where the function fetches the address. A client
that may choose an address could otherwise make the notebook's machine ask its own network: a
router, a database, a cloud's metadata service.

1. The address is parsed once, by the rules of browsers, and passed on in its normal form, so that
   no other parser reads another host in it.
2. Its host is resolved, and every IP address must be public. IPv6 addresses that contain an IPv4
   address (mapped, NAT64, 6to4) count as that one.
3. `PublicUrl.fetch` connects to an address that was checked; it does not resolve the host again. It
   takes the same steps for the target of each redirect.
"""

import gzip
import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, BinaryIO, Self
from urllib.parse import urljoin

from msgspec import Struct, structs
from pydantic_core import PydanticCustomError, Url, ValidationError, core_schema

from mcp_notebook._version import __version__
from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.safe.text import clean_text, describe_error
from mcp_notebook.text.wording import format_size

TIMEOUT = 30.0
"""Seconds that a fetch may take by default, redirects included."""
MAX_BYTES = 64 * 2**20
"""Bytes that a fetch may return by default."""
MAX_REDIRECTS = 5
"""Redirects that a fetch follows."""
RESOLVE_TIMEOUT = 10.0
"""Seconds that the system's resolver may take."""
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK = 2**16
_HEADERS = {
    "Accept-Encoding": "gzip",
    "User-Agent": f"mcp-notebook/{__version__}",
    "Connection": "close",
}
_NAT64 = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48")))
"""Networks whose addresses end with an IPv4 address."""


class Network(Struct, frozen=True):
    """The functions by which hosts are resolved and connections are made."""

    resolve: Callable[[str, int], Sequence[str]]
    """Returns the IP addresses of a host; raises OSError."""
    connect: Callable[[str, int, float], socket.socket]
    """Connects to an IP address and a port, within seconds; raises OSError."""


class Target(Struct, frozen=True):
    """An address that was checked."""

    text: str
    """The address in its normal form."""
    host: str
    port: int
    is_encrypted: bool
    path: str
    """Path and query, as a request has them."""
    addresses: tuple[str, ...]
    """The IP addresses of the host, all of them public."""


class PublicUrl(str):
    """An address on the public internet, http or https, as the type of a parameter.

    ::

        def load(url: PublicUrl) -> pd.DataFrame:
            return pd.read_csv(url.open())

    Before the function runs, the host is resolved, and refused if one of its IP addresses is
    private, loopback, link-local, multicast or reserved. `fetch` and `open` connect to an address
    that was checked, and check each redirect in the same way.

    It is a string, so libraries accept it. ``pd.read_csv(url)`` resolves the host again and follows
    any redirect, without these checks: pass ``url.open()`` instead.

    Args:
        text: The address.

    Raises:
        ValueError: It is not the address of a public host.
    """

    __slots__ = ("addresses",)
    addresses: tuple[str, ...]
    """The IP addresses of the host when it was checked."""

    def __new__(cls, text: str) -> Self:
        """Check an address."""
        return cls._make(check_url(text, SYSTEM))

    @classmethod
    def _make(cls, target: Target) -> Self:
        url = super().__new__(cls, target.text)
        url.addresses = target.addresses
        return url

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker gets the addresses that were checked, and resolves nothing.
        return _restore, (type(self), str(self), self.addresses)

    def fetch(self, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BYTES) -> bytes:
        """Return the content behind the address.

        It connects directly, without a proxy.

        Args:
            timeout: Seconds that it may take, redirects included.
            max_bytes: The greatest number of bytes that it may have.

        Raises:
            ToolError: It cannot be fetched, is too large, takes too long, or leads to an address
                that is not public.
        """
        target = _parse(str(self), self.addresses)
        return fetch_url(target, SYSTEM, timeout=timeout, max_bytes=max_bytes)

    def open(self, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BYTES) -> BinaryIO:
        """Return the content behind the address as a file: ``pd.read_csv(url.open())``.

        Args:
            timeout: As for `fetch`.
            max_bytes: As for `fetch`.

        Raises:
            ToolError: As for `fetch`.
        """
        return io.BytesIO(self.fetch(timeout=timeout, max_bytes=max_bytes))

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


def _restore(kind: type[PublicUrl], text: str, addresses: tuple[str, ...]) -> PublicUrl:
    return kind._make(_parse(text, addresses))


# -- the check -------------------------------------------------------------------------------------


def check_url(text: str, network: Network) -> Target:
    """Parse an address, resolve its host, and check that all IP addresses are public.

    Args:
        text: The address.
        network: Resolves the host.

    Raises:
        ValueError: It is not the address of a public host; says why.
    """
    target = _parse(text)
    try:
        addresses = tuple(dict.fromkeys(network.resolve(target.host, target.port)))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or describe_error(error)
        raise ValueError(f"the host {target.host} cannot be found ({reason}): check it") from None
    for address in addresses:
        if not is_public(address):
            # Without the address: clients need not learn about the network.
            raise ValueError(
                f"{target.host} is not public, but at a private or reserved address: use a host of "
                "the public internet"
            )
    if not addresses:
        raise ValueError(f"the host {target.host} has no address: check it")
    return structs.replace(target, addresses=addresses)


def _parse(text: str, addresses: tuple[str, ...] = ()) -> Target:
    try:
        url = Url(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].rpartition("URL, ")[2]
        raise ValueError(f"it is not a web address ({reason}): write 'https://host/path'") from None
    if url.scheme not in _PORTS or not url.host:
        raise ValueError(f"only http and https are allowed, not {url.scheme}")
    if url.username or url.password:
        raise ValueError("an address with a user name or a password is not allowed: remove it")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    port = url.port or _PORTS[url.scheme]
    return Target(str(url), url.host, port, url.scheme == "https", path, addresses)


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


def _connect(address: str, port: int, timeout: float) -> socket.socket:
    return socket.create_connection((address, port), timeout)


SYSTEM = Network(_resolve, _connect)
"""The system's resolver and network."""


# -- fetching --------------------------------------------------------------------------------------


class _Deadline:
    """Ends connections at a point in time, however slowly their server answers.

    Args:
        seconds: From now.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self.is_over = False
        """Whether the time is up."""

    @property
    def remaining(self) -> float:
        """Seconds that remain.

        Raises:
            TimeoutError: The time is up.
        """
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        self._replace(None)

    def watch(self, connection: socket.socket) -> None:
        """End this connection when the time is up, in place of the one before."""
        # A duplicate, because TLS takes the socket's descriptor away.
        self._replace(connection.dup())

    def _replace(self, connection: socket.socket | None) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = connection
        if self.is_over:
            self._expire()

    def _expire(self) -> None:
        with self._lock, suppress(OSError):
            self.is_over = True
            if self._connection is not None:
                self._connection.shutdown(socket.SHUT_RDWR)


def fetch_url(target: Target, network: Network, *, timeout: float, max_bytes: int) -> bytes:
    """Return the content behind an address that was checked.

    Args:
        target: The address.
        network: Resolves the hosts of redirects, and connects.
        timeout: Seconds that it may take, redirects included.
        max_bytes: The greatest number of bytes that it may have.

    Raises:
        ToolError: As for `PublicUrl.fetch`.
    """
    shown = clean_text(target.text)
    with _Deadline(timeout) as deadline:
        try:
            for _ in range(MAX_REDIRECTS + 1):
                found = _request(target, network, deadline, max_bytes)
                if isinstance(found, bytes):
                    return found
                target = check_url(urljoin(target.text, found), network)
        except ToolError as error:
            raise ToolError(f"{shown} cannot be fetched: {error}") from None
        except (OSError, http.client.HTTPException, EOFError, zlib.error) as error:
            is_late = deadline.is_over or isinstance(error, TimeoutError)
            reason = f"it takes longer than {timeout:g} s" if is_late else describe_error(error)
            raise ToolError(f"{shown} cannot be fetched: {reason}.") from None
        except ValueError as error:
            raise ToolError(f"{shown} cannot be fetched: it redirects, and {error}.") from None
    raise ToolError(f"{shown} cannot be fetched: it redirects more than {MAX_REDIRECTS} times.")


def _request(target: Target, network: Network, deadline: _Deadline, max_bytes: int) -> bytes | str:
    """Return the content, or the target of a redirect."""
    plain = _connect_to_first(target, network, deadline)
    deadline.watch(plain)
    host = target.host.strip("[]")
    connection: http.client.HTTPConnection
    if target.is_encrypted:
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, target.port, context=context)
    else:
        connection = http.client.HTTPConnection(host, target.port)
    connection.sock = plain  # `connection` would resolve the host again
    try:
        if target.is_encrypted:
            connection.sock = context.wrap_socket(plain, server_hostname=host)
        connection.request("GET", target.path, headers=_HEADERS)
        response = connection.getresponse()
        if response.status in _REDIRECTS and response.headers["Location"]:
            return str(response.headers["Location"])
        if response.status != http.client.OK:
            reason = clean_text(response.reason)
            raise ToolError(f"its server answered with status {response.status} ({reason}).")
        content = _read(response, max_bytes)
        if deadline.is_over:
            raise TimeoutError
        if response.length:  # `read` with a size does not raise
            raise http.client.IncompleteRead(content, response.length)
        if response.headers["Content-Encoding"] == "gzip":
            with gzip.open(io.BytesIO(content)) as file:
                return _read(file, max_bytes)
        return content
    finally:
        connection.close()


def _connect_to_first(target: Target, network: Network, deadline: _Deadline) -> socket.socket:
    """Connect to the first of a host's addresses that answers.

    Raises:
        OSError: None of them does.
    """
    *others, last = target.addresses
    for address in others:
        with suppress(OSError):
            return network.connect(address, target.port, deadline.remaining)
    return network.connect(last, target.port, deadline.remaining)


def _read(file: Any, max_bytes: int) -> bytes:
    content = bytearray()
    while part := file.read(_CHUNK):
        content += part
        if len(content) > max_bytes:
            raise ToolError(
                f"it has more than {format_size(max_bytes)}. The tool's author can raise "
                "`max_bytes`."
            )
    return bytes(content)
