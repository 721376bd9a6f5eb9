"""One way of a request to its answer, in each version of MCP; the official types are the judge."""

import json
from base64 import b64encode
from functools import partial

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linked_servers import make_server
from live import TIMEOUT
from mcp_types.methods import CACHEABLE_METHODS, SERVER_RESULTS, validate_server_result

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server import requests
from mcp_notebook.bridge.server.declaration import SERVER_INFO
from mcp_notebook.bridge.server.requests import Base64Text, expand
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ProtocolError,
)
from mcp_notebook.protocol.messages import Request
from mcp_notebook.protocol.methods import METHODS
from mcp_notebook.protocol.versions import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    SERVER_INFO_KEY,
    VERSIONS,
)

pytestmark = pytest.mark.anyio

EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
OPENING = {
    "protocolVersion": LATEST_HANDSHAKE,
    "capabilities": {},
    "clientInfo": {"name": "editor", "version": "1"},
}
VALID = {
    "initialize": OPENING,
    "ping": None,
    "server/discover": {},
    "tools/list": None,
    "prompts/list": {},
    "resources/list": {"cursor": None},
    "resources/templates/list": {"later": 1},
    "tools/call": {"name": "nobody"},
    "resources/read": {"uri": "ui://mcp-notebook/result.html"},
    "resources/subscribe": {"uri": "a:b"},
    "resources/unsubscribe": {"uri": "a:b"},
    "logging/setLevel": {"level": "debug"},
}
"""Requests that succeed without a notebook."""


async def ask(method, params=None, version=LATEST_MODERN, *, request_id=1, **options):
    """Return the answer of a server without notebooks, and its error code."""
    connection = ClientSession(None) if version in HANDSHAKE_VERSIONS else None
    request = ClientRequest(
        profile=read_profile(version, OPENING["clientInfo"], {}, connection),
        id=request_id,
        caller=OWNER,
        meta={},
        is_stdio=True,
        channel=None,
    )
    catalog = Catalog()
    async with Links(catalog) as links:
        server = make_server(catalog, links, **options)
        with anyio.fail_after(TIMEOUT):
            answer = await server.requests.answer(Request(request_id, method, params), request)
    message = json.loads(b"".join(expand(answer.pieces)))
    assert message["jsonrpc"] == "2.0"
    assert message["id"] == request_id
    assert message.get("error", {}).get("code") == answer.error_code
    return message


def has(version, method):
    """Tell whether a version has a method."""
    return METHODS[method].since <= version <= METHODS[method].until


# -- which methods there are


@EACH_VERSION
@pytest.mark.parametrize("method", METHODS)
async def test_a_version_has_its_own_methods_and_not_those_of_the_other_era(method, version):
    async def wait():
        raise AssertionError  # too early: its parameters may be invalid

    params = {"cursor": 1, "uri": 2, "name": 3, "_meta": []}
    message = await ask(method, params, version, ready=wait, settled=wait)
    is_known = has(version, method)
    assert message["error"]["code"] == (INVALID_PARAMS if is_known else METHOD_NOT_FOUND)
    if (method, version) in SERVER_RESULTS:  # which has no extensions
        assert is_known


@EACH_VERSION
@pytest.mark.parametrize(
    "method", ["", "tools", "tools/List", "roots/list", "notifications/initialized", "a\0b"]
)
async def test_an_unknown_method_is_named_in_the_error(method, version):
    error = (await ask(method, {"_meta": 1}, version))["error"]
    assert error == {"code": METHOD_NOT_FOUND, "message": "Method not found", "data": method}


@EACH_VERSION
@pytest.mark.parametrize(
    ("method", "params", "member"),
    [
        ("tools/list", {"cursor": 1}, "cursor"),
        ("tools/call", {}, "name"),
        ("tools/call", {"name": "top", "arguments": []}, "arguments"),
        ("prompts/get", {"name": "top", "arguments": {"a": 1}}, "arguments"),
        ("resources/read", {"uri": None}, "uri"),
        ("completion/complete", {"ref": {"type": "ref/other"}, "argument": {}}, "ref"),
        ("tools/list", {"_meta": {"progressToken": 1.5}}, "progressToken"),
    ],
)
async def test_invalid_parameters_are_named_before_anything_is_looked_up(
    method, params, member, version
):
    async def wait():
        raise AssertionError

    error = (await ask(method, params, version, ready=wait))["error"]
    assert error["code"] == INVALID_PARAMS
    assert error["message"].startswith("Invalid request parameters")
    assert member in error["message"]


# -- what all results have


@EACH_VERSION
@pytest.mark.parametrize("method", VALID)
async def test_a_result_is_what_the_version_says(method, version):
    message = await ask(method, VALID[method], version)
    if not has(version, method):
        assert message["error"]["code"] == METHOD_NOT_FOUND
        return
    result = message["result"]
    if (method, version) in SERVER_RESULTS:
        validate_server_result(method, version, result)
    is_modern = version == LATEST_MODERN
    assert ("resultType" in result) == is_modern
    assert (SERVER_INFO_KEY in result.get("_meta", {})) == is_modern
    if is_modern:
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_INFO_KEY] == SERVER_INFO
    said = {name: result[name] for name in ("ttlMs", "cacheScope") if name in result}
    is_cached = is_modern and method in CACHEABLE_METHODS
    assert said == ({"ttlMs": 0, "cacheScope": "private"} if is_cached else {})
    assert "nextCursor" not in result


@pytest.mark.parametrize("request_id", [0, -1, 10**20, "", "7", "a\0\N{SNOWMAN}"])
async def test_an_answer_has_the_id_of_its_request(request_id):
    await ask("tools/list", request_id=request_id)  # which compares them
    await ask("nothing", request_id=request_id)


async def test_a_failure_of_the_bridge_is_an_error_that_names_it_and_is_written_down(caplog):
    async def fail():
        raise LookupError("no such thing")

    error = (await ask("server/discover", {}, settled=fail))["error"]
    assert error["code"] == INTERNAL_ERROR
    assert error["message"] == "Internal error in mcp-notebook: LookupError: no such thing."
    assert "a request 'server/discover' failed" in caplog.text


@pytest.mark.parametrize("kind", [LookupError, partial(ProtocolError, INTERNAL_ERROR)])
async def test_a_failure_is_told_whatever_its_text_is(kind, monkeypatch):
    """As the path of a file whose name is not UTF-8."""
    monkeypatch.setattr(requests.logger, "disabled", True)  # pytest fails on such a text

    async def fail():
        raise kind("no file '\udc80'")

    error = (await ask("server/discover", {}, settled=fail))["error"]
    assert "no file '?'" in error["message"]


async def test_a_result_that_cannot_be_written_is_an_error(monkeypatch):
    monkeypatch.setitem(SERVER_INFO, "title", object())
    error = (await ask("server/discover", {}))["error"]
    assert error["code"] == INTERNAL_ERROR


async def test_a_client_is_not_counted_for_a_request_that_is_none():
    catalog = Catalog()
    async with Links(catalog) as links:
        server = make_server(catalog, links)
        request = ClientRequest(
            profile=read_profile(LATEST_MODERN, OPENING["clientInfo"], {}),
            id=1,
            caller=OWNER,
            meta={},
            is_stdio=False,
            channel=None,
        )
        await server.requests.answer(Request(1, "nothing"), request)
        assert server.clients._count() == []
        await server.requests.answer(Request(1, "tools/list"), request)
        assert [client.name for client in server.clients._count()] == ["editor"]


# -- bytes


@given(st.binary(max_size=10), st.integers(0, 2**18))
def test_base64_in_pieces_is_that_of_the_whole(start, size):
    data = (start or b"\0") * (size // max(len(start), 1))
    text = Base64Text(data)
    assert b"".join(text) == b64encode(data)
    assert len(text) == len(b64encode(data))
