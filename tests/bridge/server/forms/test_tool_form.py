import pytest

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.forms.tool_form import VERSIONS, find_rejection, make_tool_form
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
