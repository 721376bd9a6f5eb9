"""Which names permissions allow; what of a catalogue is allowed: see `test_permitted_tools`."""

import pytest

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions


@pytest.mark.parametrize(
    ("pattern", "name", "allowed"),
    [
        ("sales.*", "sales.top", True),
        ("sales.*", "presales.top", False),
        ("t?p", "top", True),
        ("[a-s]*", "top", False),
        ("top", "Top", False),
        ("*", "", True),
    ],
)
def test_a_pattern_matches_whole_names_with_their_case(pattern, name, allowed):
    assert Permissions(tools=(pattern,)).allow_name(name) is allowed


def test_the_default_allows_everything():
    assert Permissions().is_everything()
    assert EVERYTHING.allow_name("anything")
    assert not Permissions(read_only=True).is_everything()
