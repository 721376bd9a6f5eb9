"""URIs of resources, and sentences for those that cannot be."""

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ResourceOptions
from mcp_notebook.kernel.tools.resource_templates import make_resource_name, read_variables
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


def test_variables_are_found_with_whether_they_are_optional():
    assert read_variables("data://orders") == {}
    found = read_variables("file://{owner}/{+path}{?first,second}")
    assert found == {"owner": False, "path": False, "first": True, "second": True}
    assert make_resource_name("data://a/{b}.csv") == "data_a_b_csv"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("orders", "is not a URI: begin with a scheme"),
        ("data:", "is not a URI"),
        ("data://a b", "is not a URI"),
        ("data://" + "x" * 500, "is not a URI"),
        ("skill://x/SKILL.md", "those of skills: write `%%mcp_skill NAME`"),
        ("notebook://x", "those of the results"),
        ("data://{a}{b}", "could not be told apart"),
        ("data://{+a}/{+b}", "could not be told apart"),
        ("data://{a}/{a}", "has `a` twice"),
        ("data://{?a}/b", "cannot be a part"),
        ("data://{a:3}", "cannot be a part"),
        ("data://{a*}", "cannot be a part"),
        ("data://{a", "has no partner"),
        ("data://a}", "has no partner"),
    ],
)
def test_what_cannot_be_a_uri_gets_a_sentence(uri, said):
    with pytest.raises(DefinitionError) as refused:
        read_variables(uri)
    assert said in str(refused.value)


def frame(name: str, rows: int = 3) -> str:
    """A table."""
    return name * rows


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("frame://all", "no client could set the parameter `name`: add `{name}` to the URI"),
        ("frame://{name}/{column}", "the variable `column`, which is not a parameter"),
        ("frame://x{?name}", "`name` behind the `?` of 'frame://x{?name}' may be missing"),
    ],
)
def test_variables_are_the_parameters_of_the_function(uri, said):
    with pytest.raises(DefinitionError) as refused:
        make_tool(frame, ResourceOptions(uri=uri))
    assert said in str(refused.value)
    assert make_tool(frame, ResourceOptions(uri="frame://{name}")).info.kind == "resource"


def test_one_uri_has_one_resource():
    registry = ToolRegistry(lambda: None)
    registry.add(make_tool(frame, ResourceOptions(uri="frame://{name}")))
    with pytest.raises(DefinitionError, match="`frame` and `other` both have the URI"):
        registry.add(make_tool(frame, ResourceOptions(uri="frame://{name}", name="other")))
