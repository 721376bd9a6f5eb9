"""What a client says of itself is read as the SDK reads it, or left to the SDK."""

from itertools import product

import mcp_types as types
import pytest
from mcp.server.connection import Connection
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcp_notebook.bridge.server.forms.tool_form import VERSIONS
from mcp_notebook.bridge.server.sessions.client_profile import profile_from_sdk, read_profile

NAME = {"name": "c", "version": "1"}
INFOS = [
    None,
    NAME,
    NAME | {"name": "n" * 300, "version": "v" * 300},
    NAME | {"title": "C", "description": "d", "websiteUrl": "https://example.com", "more": 1},
    {"name": "c"},
    NAME | {"version": 1},
    NAME | {"title": 1},
    NAME | {"icons": [{"src": "data:,"}]},
    NAME | {"icons": 1},
    [],
    "c",
]
CAPABILITIES = [
    {},
    {"elicitation": {}},
    {"elicitation": {"form": {}}},
    {"elicitation": {"url": {}}},
    {"elicitation": {"form": {}, "url": {}}},
    {"elicitation": {"url": {}, "later": {}}},
    {"elicitation": {"form": None}},
    {"elicitation": None},
    {"elicitation": True},
    {"sampling": {}, "roots": {"listChanged": True}, "later": 1},
    {"sampling": {"tools": {}, "context": {}}, "roots": {}},
    {"sampling": {"tools": 1}},
    {"roots": {"listChanged": "yes"}},
    {"roots": []},
    {"experimental": {"a": {"b": 1}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    {"extensions": {"a": {"b": None}}},
    {"extensions": {"a": 1}},
    {"experimental": {"a": None}},
    {"tasks": {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}}},
    {"tasks": {"list": True}},
    None,
    [],
]


def _read_with_sdk(version, info, capabilities):
    """Return the profile that the SDK's reading of an `initialize` or an envelope leads to."""
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
        validate_client_request("initialize", version, params)
        read = types.InitializeRequestParams.model_validate(params, by_name=False)
        return profile_from_sdk(version, read, read.capabilities)
    prefix = "io.modelcontextprotocol/"
    meta = {"protocolVersion": version, "clientInfo": info, "clientCapabilities": capabilities}
    meta = {f"{prefix}{name}": value for name, value in meta.items()}
    validate_client_request("tools/list", version, {"_meta": meta})
    connection = Connection.from_envelope(version, info, capabilities)
    return profile_from_sdk(version, connection.client_params, connection.client_capabilities)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_profile_is_the_sdks(version):
    for info, capabilities in product(INFOS, CAPABILITIES):
        profile = read_profile(version, info, capabilities)
        if profile is None:
            continue
        try:
            expected = _read_with_sdk(version, info, capabilities)
        except ValidationError:
            assert info is None  # which is left to the SDK in an `initialize`: see `plain_stdio`
            assert version in HANDSHAKE_PROTOCOL_VERSIONS
        else:
            assert profile == expected, (info, capabilities)


def test_usual_clients_need_no_sdk():
    for capabilities in ({}, {"elicitation": {}}, {"roots": {"listChanged": True}, "sampling": {}}):
        assert read_profile("2025-11-25", NAME, capabilities) is not None
