"""Which names permissions allow; what of a catalogue is allowed: see `test_permitted_tools`."""

import functools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.meta_keys import TAGS
from mcp_notebook.wire.messages import ToolInfo


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


def test_a_pattern_for_a_notebook_allows_no_tool_of_one_whose_name_goes_on_after_a_dot():
    catalog = Catalog()
    for name in ("sales", "sales.private", "sales.", "sales.top"):
        catalog.set_kernel(name, notebook=name, tools=[ToolInfo(name="top", input_schema={})])
    permissions = Permissions(tools=("sales.*",))
    allowed = [entry.kernel_id for entry in catalog.entries() if permissions.allow(entry)]
    assert allowed == ["sales"]
    assert [entry.notebook for entry in catalog.entries()][1] == "sales_private"


def test_the_default_allows_everything():
    assert Permissions().is_everything
    assert EVERYTHING.allow_name("anything")
    assert not Permissions(read_only=True).is_everything


PATTERNS = st.sampled_from(["", "*", "a", "b", "a*", "?", "n.*", "n.a", "m.*", "[ab]"])
SIMPLE = st.builds(
    Permissions,
    tools=st.lists(PATTERNS, max_size=2).map(tuple),
    tags=st.frozensets(st.sampled_from("xy"), max_size=2),
    read_only=st.booleans(),
    hidden=st.lists(PATTERNS, max_size=2).map(tuple),
)
PERMISSIONS = st.one_of(
    SIMPLE,
    st.just(EVERYTHING),
    st.lists(SIMPLE, min_size=1, max_size=3).map(Permissions.allow_any),
)


@st.composite
def entries(draw):
    name, notebook = draw(st.sampled_from("abc")), draw(st.sampled_from("nm"))
    tool = ToolInfo(
        name=name,
        input_schema={},
        annotations=draw(st.sampled_from([None, {"readOnlyHint": True}, {"readOnlyHint": False}])),
        meta={TAGS: draw(st.lists(st.sampled_from("xy"), max_size=2))},
    )
    return CatalogEntry(name, "k", notebook, tool, f"{notebook}_{name}")


NAMED, READ, TAGGED = (
    Permissions(tools=("a",)),
    Permissions(read_only=True),
    Permissions(tags=frozenset("x")),
)
CHANGES_A = CatalogEntry("a", "k", "n", ToolInfo(name="a", input_schema={}, meta={TAGS: ["x"]}), "")


@given(st.lists(PERMISSIONS, min_size=1, max_size=5), st.lists(entries(), min_size=1, max_size=4))
@example([NAMED, READ, TAGGED], [CHANGES_A])
@example([NAMED, TAGGED, READ], [CHANGES_A])
@example([READ, NAMED, TAGGED], [CHANGES_A])
def test_each_limit_narrows_those_before_it_and_widens_none(sources, listed):
    limited = functools.reduce(Permissions.limit_to, sources)
    for entry in listed:
        assert limited.allow(entry) is all(source.allow(entry) for source in sources)
    if limited.is_everything:
        assert all(source.is_everything for source in sources)


@given(st.lists(SIMPLE, min_size=1, max_size=4), SIMPLE, entries())
def test_of_several_scopes_one_is_enough_within_the_limits(scopes, limits, entry):
    allowed = Permissions.allow_any(scopes).limit_to(limits)
    assert allowed.allow(entry) is (any(s.allow(entry) for s in scopes) and limits.allow(entry))
