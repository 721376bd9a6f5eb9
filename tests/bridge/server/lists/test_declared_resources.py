"""The declared resources as callers see them, from a catalogue without kernels."""

import pytest

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.server.lists.declared_resources import DeclaredResources
from mcp_notebook.errors import KernelGone, UnknownResource
from mcp_notebook.text.missing_tools import explain_departed_kernel
from mcp_notebook.wire import messages

RESTARTS = "The kernel is being restarted. Try again in a moment."


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


@pytest.mark.parametrize("uri", ["data://orders", "data://sales/orders", "frame://x", "frame://a"])
def test_a_resource_of_a_kernel_that_is_away_says_when_to_try_again(catalog, uri):
    catalog.set_away("1", RESTARTS)
    error = explain(catalog, uri)
    assert isinstance(error, KernelGone)
    assert str(error) == RESTARTS
    assert isinstance(explain(catalog, "data://stock"), UnknownResource)


def test_a_resource_that_went_says_what_became_of_it(catalog):
    why = explain_departed_kernel("sales", "The kernel was restarted.", 0)
    catalog.remove_kernel("1", why)
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
    catalog.set_away("1", RESTARTS)
    declared = DeclaredResources(tools)
    assert str(declared.explain_unknown(caller, "data://orders")) == RESTARTS
    assert isinstance(declared.explain_unknown(caller, "frame://a"), UnknownResource)
