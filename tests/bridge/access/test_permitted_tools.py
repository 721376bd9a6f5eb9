"""What callers with different permissions see of one catalogue."""

import pytest

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access import permitted_tools
from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.errors import AmbiguousTool, KernelGone, ToolGone, UnknownTool
from mcp_notebook.wire import messages


def info(name, *tags, **annotations):
    return messages.ToolInfo(
        name=name,
        input_schema={"type": "object"},
        annotations=annotations or None,
        meta={meta_keys.TAGS: list(tags)} if tags else None,
    )


@pytest.fixture
def catalog():
    catalog = Catalog()
    sales = [
        info("top", "report", readOnlyHint=True),
        info("drop", readOnlyHint=False),
        info("say"),
    ]
    catalog.set_kernel("1", notebook="sales", tools=sales)
    catalog.set_kernel("2", notebook="ops", tools=[info("top", "report"), info("restart", "admin")])
    return catalog


def caller(**permissions):
    return Caller(name="ci", permissions=Permissions(**permissions))


def names(catalog, who):
    return [entry.name for entry in PermittedTools(catalog).list_entries(who)]


def test_the_owner_sees_all_tools(catalog):
    assert names(catalog, OWNER) == ["sales.top", "drop", "say", "ops.top", "restart"]


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ({"tools": ("sales.*",)}, ["sales.top", "drop", "say"]),
        ({"tools": ("say", "ops.restart")}, ["say", "restart"]),
        ({"tools": ("SAY",)}, []),
        ({"tags": frozenset({"admin", "nobody"})}, ["restart"]),
        ({"read_only": True}, ["sales.top"]),
        ({"tools": ("ops.*",), "tags": frozenset({"report"})}, ["ops.top"]),
        ({"tools": ("ops.*",), "read_only": True}, []),
    ],
)
def test_others_see_what_satisfies_every_condition(catalog, permissions, expected):
    assert names(catalog, caller(**permissions)) == expected


def test_the_list_is_the_same_object_until_something_changes(catalog):
    tools, who = PermittedTools(catalog), caller(tools=("s*",))
    first = tools.list_entries(who)
    assert tools.list_entries(who) is first
    catalog.set_kernel("3", notebook="new", tools=[info("sum")])
    assert [entry.name for entry in tools.list_entries(who)] == ["sales.top", "drop", "say", "sum"]


def test_only_so_many_lists_are_kept(catalog, monkeypatch):
    monkeypatch.setattr(permitted_tools, "MAX_LISTS", 2)
    tools = PermittedTools(catalog)
    lists = [tools.list_entries(caller(tools=(pattern,))) for pattern in ("a*", "d*", "s*")]
    assert tools.list_entries(caller(tools=("s*",))) is lists[2]
    assert len(tools._lists) == 2


def test_a_tool_that_is_not_allowed_is_as_unknown_as_one_that_does_not_exist(catalog):
    tools, who = PermittedTools(catalog), caller(tools=("say",))
    messages = []
    for name in ("drop", "dr0p"):
        with pytest.raises(UnknownTool) as error:
            tools.find(who, name)
        messages.append(str(error.value).replace(name, ""))
    assert messages[0] == messages[1]
    assert "say" in messages[0]
    assert "restart" not in messages[0]
    assert tools.find(who, "say").tool.name == "say"


def test_a_shared_name_names_only_the_allowed_tools(catalog):
    tools = PermittedTools(catalog)
    with pytest.raises(AmbiguousTool, match="ops"):
        tools.find(OWNER, "top")
    with pytest.raises(AmbiguousTool) as error:
        tools.find(caller(tools=("sales.*",)), "top")
    assert "ops" not in str(error.value)
    with pytest.raises(UnknownTool):
        tools.find(caller(tools=("say",)), "top")


def test_what_became_of_a_tool_is_told_only_to_those_who_could_call_it(catalog):
    tools = PermittedTools(catalog)
    catalog.set_kernel("1", notebook="sales", tools=[])
    catalog.set_away("2", "It is being restarted.")
    for name, error in (("drop", ToolGone), ("restart", KernelGone)):
        with pytest.raises(error):
            tools.find(caller(tools=(name,)), name)
        with pytest.raises(UnknownTool):
            tools.find(caller(tools=("say",)), name)
