"""The forms of tools and prompts in each version of MCP, with the official types as the judge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import parse_server_result
from msgspec import convert

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.forms.tool_form import (
    find_rejection,
    make_prompt_form,
    make_tool_form,
)
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE, VERSIONS
from mcp_notebook.wire import messages


def entry(**changed):
    tool = messages.ToolInfo(
        **{"name": "top", "input_schema": {"type": "object"}, "title": "Top", **changed}
    )
    return CatalogEntry("top", "k", "sales", tool, "sales_top")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"input_schema": {"type": "string"}}, "object"),
        ({"description": "\ud800"}, "surrogate"),
    ],
)
def test_a_tool_that_no_version_accepts_is_rejected_with_the_problem(changed, problem):
    rejection = find_rejection(entry(**changed))
    assert (rejection.notebook, rejection.tool, rejection.listed_as) == ("sales", "top", None)
    assert "MCP does not accept it" in rejection.reason
    assert problem in rejection.reason


def test_a_tool_that_some_versions_do_not_accept_is_rejected_with_these():
    rejection = find_rejection(entry(output_schema={"type": "object", "properties": []}))
    assert "2025-11-25" in rejection.reason
    assert VERSIONS[-1] not in rejection.reason


def test_a_title_is_an_annotation_before_it_had_its_own_field():
    forms = {v: make_tool_form("x", entry().tool, v) for v in VERSIONS}
    assert "title" not in forms["2024-11-05"]
    assert forms["2025-03-26"]["annotations"]["title"] == "Top"
    assert forms[VERSIONS[-1]]["title"] == "Top"
    assert {form["name"] for form in forms.values()} == {"x"}


LEAVES = st.none() | st.booleans() | st.floats() | st.text("a\0\n", max_size=2)
JSON = st.recursive(
    LEAVES,
    lambda items: st.lists(items, max_size=2) | st.dictionaries(st.text("ab", max_size=1), items),
    max_leaves=4,
)


def objects(**members):
    """Return a strategy of objects that may have these members, and others."""
    return st.fixed_dictionaries({}, optional={**members, "later": JSON})


PROPERTIES = st.dictionaries(st.text("ab"), objects(title=LEAVES, description=LEAVES) | JSON)
SCHEMAS = objects(
    type=st.just("object") | JSON,
    properties=PROPERTIES | JSON,
    required=st.lists(st.text("ab", max_size=1)) | JSON,
    **{"$schema": st.just("https://json-schema.org/draft/2020-12/schema") | JSON},
)
ICONS = objects(
    src=st.just("data:,") | LEAVES,
    mimeType=LEAVES,
    sizes=st.lists(st.text("ab") | LEAVES) | LEAVES,
    theme=st.sampled_from(["light", "dark", "blue"]) | LEAVES,
)
INFOS = st.fixed_dictionaries(
    {"name": st.just("top"), "input_schema": SCHEMAS},
    optional={
        "title": st.text("ab"),
        "description": st.text("ab"),
        "output_schema": SCHEMAS,
        "annotations": objects(title=LEAVES, readOnlyHint=LEAVES, idempotentHint=LEAVES),
        "icons": st.lists(ICONS, max_size=2),
        "meta": st.dictionaries(st.text("ab"), JSON),
    },
)


@given(st.sampled_from(VERSIONS), INFOS)
@pytest.mark.parametrize(
    ("make", "method", "name"),
    [(make_tool_form, "tools/list", "tools"), (make_prompt_form, "prompts/list", "prompts")],
)
def test_whatever_a_kernel_sends_is_refused_or_what_the_official_types_take(
    make, method, name, version, info
):
    """One form that is not valid would cost the client its whole list."""
    tool = convert(info, messages.ToolInfo)
    try:
        form = make("top", tool, version)
    except ValueError:
        return
    result = {name: [form], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    (read,) = getattr(parse_server_result(method, version, result), name)
    assert read.name == "top"


@pytest.mark.parametrize("theme", ["light", "dark", None])
def test_an_icon_may_be_for_one_theme(theme):
    icons = [{"src": "data:,", "theme": theme}]
    assert make_tool_form("x", entry(icons=icons).tool, LATEST_HANDSHAKE)["icons"] == icons
