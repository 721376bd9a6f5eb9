import mcp_types as types
import pytest
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import version

from mcp_notebook.protocol import errors, versions
from mcp_notebook.protocol.errors import ProtocolError

KEYS = {
    "PROTOCOL_VERSION_KEY": types.PROTOCOL_VERSION_META_KEY,
    "CLIENT_INFO_KEY": types.CLIENT_INFO_META_KEY,
    "CLIENT_CAPABILITIES_KEY": types.CLIENT_CAPABILITIES_META_KEY,
    "LOG_LEVEL_KEY": types.LOG_LEVEL_META_KEY,
    "SERVER_INFO_KEY": types.SERVER_INFO_META_KEY,
}


def test_the_codes_of_errors_are_the_sdks():
    names = [name for name in vars(errors) if hasattr(types, name) and name.isupper()]
    assert len(names) == 9
    for name in names:
        assert getattr(errors, name) == getattr(types, name), name


def test_the_statuses_of_errors_are_the_sdks():
    assert dict(errors.HTTP_STATUSES) == dict(ERROR_CODE_HTTP_STATUS)


def test_the_versions_of_the_protocol_are_the_sdks():
    assert tuple(version.HANDSHAKE_PROTOCOL_VERSIONS) == versions.HANDSHAKE_VERSIONS
    assert tuple(version.MODERN_PROTOCOL_VERSIONS) == versions.MODERN_VERSIONS
    assert tuple(version.KNOWN_PROTOCOL_VERSIONS) == versions.VERSIONS


@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_the_protocol_are_the_sdks(name):
    assert getattr(versions, name) == KEYS[name]


def test_an_error_has_data_if_there_is_any():
    assert ProtocolError(-1, "no").form == {"code": -1, "message": "no"}
    assert ProtocolError(-1, "no", {"a": 1}).form["data"] == {"a": 1}
