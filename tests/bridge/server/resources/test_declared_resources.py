"""The declared resources as callers see them, from a catalogue without kernels."""

import pytest

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.server.resources.declared_resources import DeclaredResources
from mcp_notebook.errors import UnknownResource
from mcp_notebook.text.missing_tools import explain_departed_kernel
from mcp_notebook.wire import messages

LEFT = explain_departed_kernel("sales", "The kernel was restarted.", 0)


def info(name, uri):
    return messages.ToolInfo(name=name, input_schema={}, kind="resource", uri=uri)


@pytest.fixture
def catalog():
    catalog = Catalog()
    offered = [info("orders", "data://orders"), info("frame", "frame://{name}")]
    catalog.set_kernel("1", notebook="sales", tools=offered)
    return catalog


def explain(catalog, uri, caller=OWNER):
    declared = DeclaredResources(PermittedTools(catalog))
    assert declared.find(caller, uri) is None
    return declared.explain_unknown(caller, uri)


def test_a_resource_that_went_says_what_became_of_it(catalog):
    catalog.remove_kernel("1", LEFT)
    error = explain(catalog, "frame://customers")
    assert isinstance(error, UnknownResource)
    assert "of the notebook 'sales' is gone. The kernel was restarted at" in str(error)
    assert error.uri == "frame://customers"


def test_a_resource_that_got_another_uri_says_which(catalog):
    catalog.set_kernel("1", notebook="sales", tools=[info("orders", "data://all-orders")])
    assert "Read 'data://all-orders' instead." in str(explain(catalog, "data://orders"))


def test_what_a_caller_never_saw_is_not_explained_to_it(catalog):
    caller = Caller(name="ci", permissions=Permissions(tools=("orders",)))
    tools = PermittedTools(catalog)
    tools.list_entries(caller, "resource")
    catalog.remove_kernel("1", LEFT)
    declared = DeclaredResources(tools)
    assert "is gone" in str(declared.explain_unknown(caller, "data://orders"))
    assert "is gone" not in str(declared.explain_unknown(caller, "frame://a"))


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("doc://{name}", "doc://..%2F..%2Fetc%2Fpasswd"),
        ("doc://{name}", "doc://.."),
        ("doc://{name}", "doc://..%5Csecret"),
        ("doc://{name}", "doc://%2Fetc%2Fpasswd"),
        ("doc://{name}", "doc://C:%5CWindows"),
        ("doc://{name}", "doc://a%2fb"),
        ("doc://{name}.csv", "doc://a%00.csv"),
        ("doc://{name}", "doc://a\0"),
        ("doc://{name}", "doc://a%ff"),
        ("doc://{name}", "doc://a%ed%a0%80"),
        ("doc://{+path}", "doc://a/../../etc/passwd"),
        ("doc://{+path}", "doc://a/%2e%2e/b"),
        ("doc://{+path}", "doc:///etc/passwd"),
        ("doc://{+path}", "doc://%2Fetc%2Fpasswd"),
        ("doc://all{?file}", "doc://all?file=../b"),
    ],
)
def test_a_uri_whose_value_could_lead_out_of_a_folder_fits_no_template(template, uri):
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[info("doc", template)])
    assert str(explain(catalog, uri)).endswith(f"The notebooks' resources: {template}.")
