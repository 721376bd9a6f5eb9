"""Requests that a proxy and the bridge behind it could take apart differently.

What a proxy takes for a body may then be a request to the bridge, with whatever it says. Each of
these has such a body, and the whole is sent with the token: the worst case.
"""

import json
import re
import socket
from urllib.parse import urlsplit

import pytest
from bridges import INITIALIZE, LIMIT, TOKEN, ask, http_bridge

HOST = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
HIDDEN = f"GET /hidden HTTP/1.1\r\n{HOST}\r\n".encode()
BODY = json.dumps(INITIALIZE).encode()
LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def url(module_home):
    with http_bridge(module_home) as running:
        yield running.url


def _head(*lines, request_line=b"POST /mcp HTTP/1.1", end=b"\r\n"):
    usual = [*HOST.encode().split(b"\r\n")[:2], b"Content-Type: application/json"]
    accept = b"Accept: application/json, text/event-stream"
    return end.join([request_line, *usual, accept, *lines, b"", b""])


def _exchange(url, *pieces):
    """Return the status of each answer, and all that was said until the connection closed."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=LIMIT) as client:
        said = b""
        try:
            for piece in pieces:
                client.sendall(piece)
            while data := client.recv(65536):
                said += data
        except ConnectionError:
            pass
    return re.findall(rb"HTTP/1\.1 (\d+)", said), said


AMBIGUOUS = {
    "a length and chunks": _head(LENGTH, CHUNKED) + CHUNKS,
    "chunks and a length": _head(CHUNKED, LENGTH) + CHUNKS,
    "a short length and chunks": _head(b"Content-Length: 4", CHUNKED) + CHUNKS,
    "the length twice": _head(LENGTH, LENGTH) + BODY,
    "two lengths": _head(LENGTH, b"Content-Length: 0") + BODY,
    "a list of lengths": _head(LENGTH + b", %d" % len(BODY)) + BODY,
    "a length with a sign": _head(b"Content-Length: +%d" % len(BODY)) + BODY,
    "a negative length": _head(b"Content-Length: -1") + BODY,
    "a hexadecimal length": _head(b"Content-Length: 0x10") + BODY,
    "a length with a gap": _head(b"Content-Length: 1 2") + BODY,
    "no length": _head(b"Content-Length:") + BODY,
    "a length beyond 64 bits": _head(b"Content-Length: 99999999999999999999") + BODY,
    "space before a colon": _head(b"Transfer-Encoding : chunked") + CHUNKS,
    "a folded coding": _head(b"Transfer-Encoding:\r\n chunked") + CHUNKS,
    "a folded header": _head(b"X: a\r\n b", LENGTH) + BODY,
    "an unknown coding": _head(b"Transfer-Encoding: xchunked") + CHUNKS,
    "chunks, but not last": _head(b"Transfer-Encoding: chunked, identity") + CHUNKS,
    "chunks twice": _head(CHUNKED, CHUNKED) + CHUNKS,
    "a quoted coding": _head(b'Transfer-Encoding: "chunked"') + CHUNKS,
    "a coding after a control": _head(b"Transfer-Encoding: \x0bchunked") + CHUNKS,
    "lines that end in LF": _head(LENGTH, end=b"\n") + BODY,
    "one line that ends in LF": _head(b"X: a\nContent-Length: 0", LENGTH) + BODY,
    "one line that ends in CR": _head(b"X: a\rContent-Length: 0", LENGTH) + BODY,
    "a NUL": _head(b"X: a\0b", LENGTH) + BODY,
    "no colon": _head(b"X", LENGTH) + BODY,
    "a name with space": _head(b"X y: 1", LENGTH) + BODY,
    "space before a name": _head(b" Content-Length: 0", LENGTH) + BODY,
    "an empty name": _head(b": 0", LENGTH) + BODY,
    "a chunk's size with 0x": _head(CHUNKED) + b"0x" + CHUNKS,
    "a chunk's size with a sign": _head(CHUNKED) + b"+" + CHUNKS,
    "a negative chunk": _head(CHUNKED) + b"-" + CHUNKS,
    "a chunk's size and space": _head(CHUNKED) + CHUNKS.replace(b"\r\n{", b" \r\n{", 1),
    "a chunk's size and LF": _head(CHUNKED) + CHUNKS.replace(b"\r\n{", b"\n{", 1),
    "an extension and LF": _head(CHUNKED) + CHUNKS.replace(b"\r\n{", b";\n{", 1),
    "an extension and CR": _head(CHUNKED) + CHUNKS.replace(b"\r\n{", b";\r{", 1),
    "a chunk beyond 64 bits": _head(CHUNKED) + b"1000000000000000" + CHUNKS,
    "a chunk without an end": _head(CHUNKED) + CHUNKS.replace(b"\r\n0", b"0"),
    "a chunk that ends in LF": _head(CHUNKED) + CHUNKS.replace(b"\r\n0", b"\n0"),
    "chunks that end in LF": _head(CHUNKED) + CHUNKS[:-4] + b"\n\n",
    "a method in small letters": _head(LENGTH, request_line=b"post /mcp HTTP/1.1") + BODY,
    "a version that there is not": _head(LENGTH, request_line=b"POST /mcp HTTP/1.2") + BODY,
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "space in the address": _head(LENGTH, request_line=b"POST /mcp x HTTP/1.1") + BODY,
    "another protocol and a body": _head(b"Connection: Upgrade", b"Upgrade: h2c", LENGTH) + BODY,
    "another protocol and chunks": _head(b"Connection: Upgrade", b"Upgrade: h2c", CHUNKED) + CHUNKS,
}


@pytest.mark.parametrize("ambiguous", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_request_that_could_be_read_in_two_ways_is_refused_and_ends_the_connection(
    url, ambiguous
):
    statuses, said = _exchange(url, ambiguous + HIDDEN)
    assert statuses == [b"400"]
    assert said.endswith(b"The request is refused: it is not valid HTTP.") or b"protocol" in said


@pytest.mark.parametrize("version", [b"", b" HTTP/0.9", b" HTTP/2.0"])
def test_another_version_of_http_is_refused(url, version):
    statuses, _ = _exchange(url, _head(LENGTH, request_line=b"POST /mcp" + version) + BODY + HIDDEN)
    assert statuses == [b"505"]


def test_the_body_of_a_request_for_another_protocol_is_not_a_request(url):
    """Sent apart from its head, it was one."""
    head = _head(b"Connection: Upgrade", b"Upgrade: h2c", b"Content-Length: %d" % len(HIDDEN))
    statuses, _ = _exchange(url, head, HIDDEN)
    assert statuses == [b"400"]


@pytest.mark.parametrize("trailer", ["Origin: http://evil.example", "Host: evil.example", "a: b"])
def test_a_trailer_is_not_a_header(url, trailer):
    whole = _head(CHUNKED) + CHUNKS[:-2] + f"{trailer}\r\n\r\n".encode()
    statuses, _ = _exchange(url, whole + HIDDEN)  # which ends the connection
    assert statuses == [b"200"]


def test_the_token_in_a_trailer_is_none(url):
    head = _head(CHUNKED).replace(TOKEN.encode(), b"wrong")
    trailer = f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
    statuses, _ = _exchange(url, head + CHUNKS[:-2] + trailer + HIDDEN)
    assert statuses == [b"401"]


def test_a_body_in_chunks_is_served(url):
    assert ask(url, body=iter([BODY[:9], BODY[9:]])).status == 200
