import mcp_types as types
import pytest

from mcp_notebook.bridge.server.sessions import client_profile, protocol_error
from mcp_notebook.bridge.server.sessions.protocol_error import ProtocolError


@pytest.mark.parametrize("module", [client_profile, protocol_error])
def test_numbers_and_names_of_the_protocol_are_the_sdks(module):
    names = [name for name in vars(module) if hasattr(types, name) and name.isupper()]
    assert len(names) >= 5
    for name in names:
        assert getattr(module, name) == getattr(types, name), name


def test_an_error_has_data_if_there_is_any():
    assert ProtocolError(-1, "no").form == {"code": -1, "message": "no"}
    assert ProtocolError(-1, "no", {"a": 1}).form["data"] == {"a": 1}
