"""Parameters for public addresses: what is refused, and that only checked addresses are asked.

The network of these tests is the loopback interface: a `Network` says that hosts are at public
addresses, and connects each of them to a real server here.
"""

import gzip
import http.server
import ipaddress
import pickle
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import mcp_notebook
from mcp_notebook import PublicUrl
from mcp_notebook.errors import InvalidArguments, ToolError
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.public_url import (
    MAX_REDIRECTS,
    Network,
    check_url,
    fetch_url,
    is_public,
)

PUBLIC, OTHER = "93.184.216.34", "2606:2800:220:1::1"
SITE = f"http://{PUBLIC}"


@dataclass
class World:
    """Hosts with public addresses, which lead to a server on this machine."""

    port: int = 0
    hosts: dict[str, list[str]] = field(default_factory=dict)
    """The addresses of each host; the next answer is the next list."""
    asked: list[str] = field(default_factory=list)
    """Hosts that were resolved."""
    connected: list[str] = field(default_factory=list)
    """Addresses that were connected to."""
    down: set[str] = field(default_factory=set)

    @property
    def network(self):
        return Network(self._resolve, self._connect)

    def _resolve(self, host, _port):
        self.asked.append(host)
        if host not in self.hosts:
            raise socket.gaierror(-2, "Name or service not known")
        return self.hosts[host]

    def _connect(self, address, _port, timeout):
        self.connected.append(address)
        if address in self.down:
            raise ConnectionRefusedError(111, "Connection refused")
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def fetch(self, url, *, timeout=20, max_bytes=1_000):
        target = check_url(url, self.network)
        return fetch_url(target, self.network, timeout=timeout, max_bytes=max_bytes)


class Pages(http.server.BaseHTTPRequestHandler):
    """What the server here answers; `never` holds a request open until the test ends."""

    def do_GET(self):
        at = f"{self.headers['Host']}{self.path}"
        match self.path.partition("?")[0]:
            case "/where":
                self._send(200, at.encode())
            case "/large":
                self._send(200, b"x" * 5_000)
            case "/packed":
                self._send(200, gzip.compress(b"x" * 900), ("Content-Encoding", "gzip"))
            case "/bomb":
                self._send(200, gzip.compress(b"x" * 10**6), ("Content-Encoding", "gzip"))
            case "/to":
                self._send(302, b"", ("Location", self.path.partition("?")[2]))
            case "/loop":
                self._send(301, b"", ("Location", "/loop"))
            case "/short":
                self.send_response(200)
                self.send_header("Content-Length", "10")
                self.end_headers()
                self.wfile.write(b"x")
            case "/never":
                self.server.never.wait(60)
            case _:
                self._send(404, b"")

    def _send(self, status, body, *headers):
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments): ...


@contextmanager
def serving(world, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.never = threading.Event()
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=partial(server.serve_forever, 0.01))
    thread.start()
    world.port = server.server_port
    try:
        yield
    finally:
        server.never.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def world():
    """A server that every public address leads to."""
    world = World(
        hosts={"data.example": [PUBLIC], PUBLIC: [PUBLIC], "inside.example": ["10.0.0.1"]}
    )
    with serving(world):
        yield world


def load(url: PublicUrl): ...
def load_all(urls: list[PublicUrl]): ...


class Source(BaseModel):
    url: PublicUrl | None = None


def load_source(source: Source): ...


def validate(value, function=load, name="url"):
    return read_function_schema(function).validate({name: value})[name]


def refusal(value):
    with pytest.raises(InvalidArguments) as raised:
        validate(value)
    return str(raised.value)


# -- the check -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("0.0.0.0", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1"),
        *("240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1"),
        *("fd12::1", "ff02::1", "fec0::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a00:1::1"),
        "2001:0:5ef5:79fd::1",
    ],
)
def test_an_address_of_this_machine_or_a_private_network_is_not_public(address):
    assert not is_public(address)
    with pytest.raises(ValueError, match=r"name.example is not public"):
        check_url("http://name.example", Network(lambda *_: [PUBLIC, address], None))


@pytest.mark.parametrize(
    "address", [PUBLIC, OTHER, "8.8.8.8", f"::ffff:{PUBLIC}", "64:ff9b::808:808"]
)
def test_an_address_of_the_internet_is_public(address):
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_counts_the_same_within_ipv6(address):
    same = [f"::ffff:{address}", str(ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80)))]
    assert [*map(is_public, same)] == [is_public(str(address))] * 2
    assert not (is_public(str(address)) and (address.is_private or address.is_multicast))


def test_an_address_is_refused_in_one_sentence_before_the_function_runs():
    for sent, said in {
        "http://localhost:8000/a": "localhost is not public, but at a private or reserved address: "
        "use a host of the public internet.",
        "http://0x7f.1/": "127.0.0.1 is not public, but at a private or reserved address: use a "
        "host of the public internet.",
        "http://2130706433": "127.0.0.1 is not public, but at a private or reserved address: use a "
        "host of the public internet.",
        "http://[::ffff:10.0.0.1]/": "[::ffff:a00:1] is not public, but at a private or reserved "
        "address: use a host of the public internet.",
        "http://a:b@93.184.216.34/": "an address with a user name or a password is not allowed: "
        "remove it.",
        "ftp://example.com/a": "only http and https are allowed, not ftp.",
        "file:///etc/passwd": "only http and https are allowed, not file.",
        "sales.csv": "it is not a web address (relative URL without a base): write "
        "'https://host/path'.",
        "": "it is not a web address (input is empty): write 'https://host/path'.",
        5: "allowed: web address as text.",
    }.items():
        text = refusal(sent)
        assert text.startswith("url: got ")
        assert text.endswith(f"; {said}"), text
    for sent in [
        "http://\0/",
        "http://a b/",
        "http://\udc80/",
        "https://",
        "http://[::1",
        "\n" * 9,
    ]:
        assert "\n" not in refusal(sent)


def test_a_host_that_cannot_be_found_is_named(world):
    with pytest.raises(
        ValueError, match=r"the host nowhere.example cannot be found \(Name or serv"
    ):
        check_url("https://nowhere.example/", world.network)
    world.hosts["empty.example"] = []
    with pytest.raises(ValueError, match=r"the host empty.example has no address"):
        check_url("https://empty.example/", world.network)


def test_the_function_gets_a_string_in_normal_form_with_the_checked_addresses():
    url = validate(f"HTTP://{PUBLIC}\\@127.0.0.1/a b?q=é")
    assert url == f"{SITE}/@127.0.0.1/a%20b?q=%C3%A9"
    assert isinstance(url, str)
    assert url.addresses == (PUBLIC,)
    assert pickle.loads(pickle.dumps(url)).addresses == (PUBLIC,)


def test_it_is_checked_in_lists_and_models():
    assert validate([SITE], load_all, "urls") == [f"{SITE}/"]
    assert validate({"url": SITE}, load_source, "source").url.addresses == (PUBLIC,)
    with pytest.raises(InvalidArguments, match=r"urls\[1\]: got 'http://127.0.0.1'"):
        validate([SITE, "http://127.0.0.1"], load_all, "urls")
    assert Source(url=SITE).model_dump_json() == f'{{"url":"{SITE}/"}}'


def test_clients_see_that_it_is_a_public_address():
    assert read_function_schema(load).input_schema["properties"]["url"] == {
        "type": "string",
        "format": "uri",
        "description": "A public web address, http or https.",
    }


def test_an_author_makes_one_with_the_same_check():
    assert PublicUrl(SITE).addresses == (PUBLIC,)
    with pytest.raises(ValueError, match="localhost is not public"):
        PublicUrl("http://localhost")
    default = PublicUrl(SITE)

    def later(url: PublicUrl = default): ...

    assert read_function_schema(later).validate({})["url"] is default
    assert mcp_notebook.PublicUrl is PublicUrl


# -- fetching --------------------------------------------------------------------------------------


def test_the_address_that_was_checked_is_asked_even_if_the_name_now_leads_elsewhere(world):
    target = check_url("http://data.example/where?x=1", world.network)
    world.hosts["data.example"] = ["127.0.0.1"]
    found = fetch_url(target, world.network, timeout=20, max_bytes=99)
    assert found == b"data.example/where?x=1"
    assert (world.asked, world.connected) == (["data.example"], [PUBLIC])


def test_the_next_address_is_asked_if_the_first_does_not_answer(world):
    world.hosts["data.example"] = [OTHER, PUBLIC]
    world.down = {OTHER}
    assert world.fetch("http://data.example/where") == b"data.example/where"
    assert world.connected == [OTHER, PUBLIC]
    world.down = {OTHER, PUBLIC}
    with pytest.raises(ToolError, match=r"http://data.example/where cannot be fetched: .*refused"):
        world.fetch("http://data.example/where")


def test_a_redirect_is_followed_to_public_hosts_only(world):
    assert world.fetch(f"http://data.example/to?{SITE}/where") == f"{PUBLIC}/where".encode()
    assert world.asked[-1] == PUBLIC
    before = len(world.connected)
    for target, said in {
        "http://inside.example/": "inside.example is not public, but at a private",
        "http://nowhere.example/": "the host nowhere.example cannot be found",
        "file:///etc/passwd": "only http and https are allowed, not file",
        "//inside.example/": "inside.example is not public",
    }.items():
        with pytest.raises(ToolError, match=f"cannot be fetched: it redirects, and {said}"):
            world.fetch(f"http://data.example/to?{target}")
    assert set(world.connected[before:]) == {PUBLIC}
    with pytest.raises(ToolError, match=f"it redirects more than {MAX_REDIRECTS} times"):
        world.fetch("http://data.example/loop")


def test_size_and_time_have_bounds(world):
    for path in ("large", "bomb"):
        with pytest.raises(ToolError, match=r"it has more than 1 kB. .*can raise `max_bytes`"):
            world.fetch(f"http://data.example/{path}")
    with pytest.raises(ToolError, match=r"cannot be fetched: it takes longer than 0.2 s\."):
        world.fetch("http://data.example/never", timeout=0.2)
    assert world.fetch("http://data.example/packed") == b"x" * 900


def test_what_the_server_does_wrong_is_a_sentence(world):
    for path, said in {"gone": r"status 404 \(Not Found\)", "short": "IncompleteRead"}.items():
        with pytest.raises(
            ToolError, match=rf"http://data.example/{path} cannot be fetched: .*{said}"
        ):
            world.fetch(f"http://data.example/{path}")


def test_the_certificate_must_be_that_of_the_host(world, tmp_path, monkeypatch):
    certfile, keyfile = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    about = ["-nodes", "-subj", "/CN=x", "-addext", "subjectAltName=DNS:data.example"]
    files = ["-keyout", keyfile, "-out", certfile]
    subprocess.run([*command, *about, *files], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certfile, keyfile)
    monkeypatch.setenv("SSL_CERT_FILE", str(certfile))
    world.hosts["other.example"] = [PUBLIC]
    with serving(world, context):
        assert world.fetch("https://data.example/where") == b"data.example/where"
        with pytest.raises(ToolError, match="CERTIFICATE_VERIFY_FAILED"):
            world.fetch("https://other.example/where")


def test_a_slow_handshake_ends_with_the_time_limit(world):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        world.port = silent.getsockname()[1]
        with pytest.raises(ToolError, match=r"it takes longer than 0.2 s"):
            world.fetch("https://data.example/where", timeout=0.2)
