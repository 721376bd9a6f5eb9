import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_notebook.bridge.server.versions import SINCE, has_feature


@pytest.mark.parametrize("feature", SINCE)
def test_a_feature_is_there_from_its_version_on(feature):
    versions = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
    assert [has_feature(version, feature) for version in versions] == [
        version >= SINCE[feature] for version in versions
    ]
