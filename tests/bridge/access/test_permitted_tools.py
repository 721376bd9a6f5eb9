"""What callers with different permissions see of one catalogue."""

import time

import pytest
from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.errors import AmbiguousTool, OtherKind, ToolGone, UnknownTool
from mcp_notebook.text.missing_tools import DroppedTool, explain_departed_kernel
from mcp_notebook.wire import messages


def info(name, *tags, **annotations):
    return messages.ToolInfo(
        name=name,
        input_schema={"type": "object"},
        annotations=annotations or None,
        meta={meta_keys.TAGS: list(tags)} if tags else None,
    )


LEFT = explain_departed_kernel("ops", "The kernel was shut down.", 0)


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
    assert names(catalog, OWNER) == ["sales_top", "drop", "say", "ops_top", "restart"]


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ({"tools": ("sales.*",)}, ["sales_top", "drop", "say"]),
        ({"tools": ("say", "ops.restart")}, ["say", "restart"]),
        ({"tools": ("SAY",)}, []),
        ({"tags": frozenset({"admin", "nobody"})}, ["restart"]),
        ({"read_only": True}, ["sales_top"]),
        ({"tools": ("ops.*",), "tags": frozenset({"report"})}, ["ops_top"]),
        ({"tools": ("ops.*",), "read_only": True}, []),
    ],
)
def test_others_see_what_satisfies_every_condition(catalog, permissions, expected):
    assert names(catalog, caller(**permissions)) == expected


@pytest.mark.parametrize("pattern", ["top", "sales.top", "t?p", "*_top", "sales_*", "*.top"])
def test_what_is_allowed_does_not_depend_on_which_other_notebooks_are_open(pattern):
    alone, together = Catalog(), Catalog()
    for catalog in (alone, together):
        catalog.set_kernel("1", notebook="sales", tools=[info("top")])
    together.set_kernel("2", notebook="ops", tools=[info("top")])
    for permissions in ({"tools": (pattern,)}, {"hidden": (pattern,)}):
        allowed = [
            [
                entry.kernel_id
                for entry in PermittedTools(catalog).list_entries(caller(**permissions))
            ]
            for catalog in (alone, together)
        ]
        assert ("1" in allowed[0]) == ("1" in allowed[1])


def test_the_list_is_the_same_object_until_something_changes(catalog):
    tools, who = PermittedTools(catalog), caller(tools=("s*",))
    first = tools.list_entries(who)
    assert tools.list_entries(who) is first
    catalog.set_kernel("3", notebook="new", tools=[info("sum")])
    assert [entry.name for entry in tools.list_entries(who)] == ["sales_top", "drop", "say", "sum"]


def test_kept_lists_are_limited(catalog):
    tools = PermittedTools(catalog, max_lists=2)
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
    callers = {name: caller(tools=(name,)) for name in ("drop", "restart", "say")}
    for who in callers.values():
        tools.list_entries(who)
    catalog.set_kernel("1", notebook="sales", tools=[])
    catalog.remove_kernel("2", LEFT)
    for name in ("drop", "restart"):
        with pytest.raises(ToolGone):
            tools.find(callers[name], name)
        with pytest.raises(UnknownTool):
            tools.find(callers["say"], name)


def test_a_tool_that_could_not_be_called_when_it_was_there_was_never_there(catalog):
    tools, who = PermittedTools(catalog), caller(read_only=True)
    tools.list_entries(who)
    catalog.set_kernel("1", notebook="sales", tools=[])
    catalog.remove_kernel("2", LEFT)
    with pytest.raises(ToolGone):
        tools.find(who, "sales_top")
    for name in ("drop", "sales.drop", "sales_drop", "restart", "ops_restart"):
        with pytest.raises(UnknownTool) as error:
            tools.find(who, name)
        assert "shut down" not in str(error.value)


def test_a_renamed_tool_does_not_tell_a_name_that_is_hidden(catalog):
    tools, who = PermittedTools(catalog), caller(tools=("say",))
    described = structs.replace(info("say"), description="Say it.")
    catalog.set_kernel("1", notebook="sales", tools=[described])
    tools.list_entries(who)
    new = [structs.replace(described, name="tell")]
    renamed = {"say": DroppedTool("renamed", time.time(), new_name="tell")}
    catalog.set_kernel("1", notebook="sales", tools=new, missing=renamed)
    with pytest.raises(ToolGone, match="tell"):
        tools.find(OWNER, "say")
    with pytest.raises(ToolGone) as error:
        tools.find(who, "say")
    assert "tell" not in str(error.value)


def test_what_is_remembered_of_tools_that_have_gone_is_bounded(catalog):
    tools, who = PermittedTools(catalog, max_past_names=10), caller(tools=("t*",))
    for number in range(100):
        catalog.set_kernel("1", notebook="sales", tools=[info(f"t{number}")])
        tools.list_entries(who)
    assert len(tools._lists[who.permissions, "tool"].past_names) <= 14


def test_the_list_is_the_same_object_while_only_hidden_tools_change(catalog):
    tools, who = PermittedTools(catalog), caller(tools=("ops.*",))
    first = tools.list_entries(who)
    catalog.set_kernel("1", notebook="sales", tools=[info("top"), info("new")])
    assert tools.list_entries(who) is first


def _related(*names):
    tool = structs.replace(info("say"), description="Say it.")
    return structs.replace(tool, meta={meta_keys.RELATED: list(names)})


@pytest.mark.parametrize(
    ("allowed", "text", "related"),
    [
        ("*", "Say it.\n\nSee also: drop, restart.", ["drop", "restart"]),
        ("[sd]*", "Say it.\n\nSee also: drop.", ["drop"]),
        ("say", "Say it.", None),
    ],
)
def test_a_tool_names_only_those_related_tools_that_the_caller_sees(
    catalog, allowed, text, related
):
    sales = [info("drop"), _related("drop", "restart")]
    catalog.set_kernel("1", notebook="sales", tools=sales)
    tools, who = PermittedTools(catalog), caller(tools=(allowed,))
    (listed,) = (entry for entry in tools.list_entries(who) if entry.name == "say")
    for entry in (listed, tools.find(who, "say"), tools.find(who, "sales.say")):
        assert entry.tool.description == text
        assert (entry.tool.meta or {}).get(meta_keys.RELATED) == related


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ({"hidden": ("ops.*",)}, ["sales_top", "drop", "say"]),
        ({"tools": ("*s*",), "hidden": ("say", "restart")}, ["sales_top", "drop", "ops_top"]),
        ({"hidden": ("*",)}, []),
        ({"within": Permissions(tools=("sales.*",)), "read_only": True}, ["sales_top"]),
        ({"within": Permissions(tools=("sales.*",)), "tools": ("ops.*",)}, []),
    ],
)
def test_what_is_hidden_and_what_is_not_within_other_permissions_is_not_seen(
    catalog, permissions, expected
):
    assert names(catalog, caller(**permissions)) == expected


def test_limits_add_up(catalog):
    first, second = Permissions(tools=("*s*",)), Permissions(tags=frozenset({"report", "admin"}))
    third = Permissions(hidden=("ops.*",))
    for limited in (
        first.limit_to(second).limit_to(third),
        third.limit_to(second).limit_to(first).limit_to(Permissions()),
        Permissions().limit_to(first.limit_to(second).limit_to(third)),
    ):
        who = Caller(name="ci", permissions=limited)
        assert names(catalog, who) == ["sales_top"]


def test_prompts_have_permissions_as_tools_do(catalog):
    report = structs.replace(info("report", readOnlyHint=True), kind="prompt")
    catalog.set_kernel("3", notebook="hr", tools=[info("pay"), report])
    tools, guest = PermittedTools(catalog), caller(tools=("hr.pay",))
    reader, everyone = caller(read_only=True, tools=("hr.*",)), caller(tools=("*",))
    assert [entry.name for entry in tools.list_entries(reader, "prompt")] == ["report"]
    assert tools.find(everyone, "report", "prompt").tool.name == "report"
    assert tools.list_entries(guest, "prompt") == ()
    with pytest.raises(OtherKind):
        tools.find(everyone, "report")
    for kind in ("tool", "prompt"):  # not that it is a prompt: the guest must not know
        with pytest.raises(UnknownTool, match=f"Unknown {kind}"):
            tools.find(guest, "report", kind)
