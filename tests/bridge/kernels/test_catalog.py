import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook import meta_keys
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.discovery.departures import KEEP
from mcp_notebook.errors import AmbiguousTool, OtherKind, ToolGone, UnknownTool
from mcp_notebook.text.missing_tools import DroppedTool, MissingTool
from mcp_notebook.wire import messages

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def tools(*names, description=""):
    return [
        messages.ToolInfo(name=name, description=description, input_schema={}) for name in names
    ]


def served(catalog):
    return [entry.name for entry in catalog.entries()]


def test_tools_come_in_the_order_of_kernels_then_of_definition():
    catalog = Catalog()
    catalog.set_kernel("2", notebook="b", tools=tools("z", "y"))
    catalog.set_kernel("1", notebook="a", tools=tools("x"))
    catalog.set_kernel("2", notebook="b", tools=tools("y", "w"))
    assert served(catalog) == ["y", "w", "x"]


def test_tools_of_a_higher_priority_come_first_over_all_kernels():
    def prioritised(**priorities):
        return [
            messages.ToolInfo(name=name, input_schema={}, meta={meta_keys.PRIORITY: priority})
            for name, priority in priorities.items()
        ]

    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=[*tools("plain"), *prioritised(low=-1, high=2)])
    catalog.set_kernel("2", notebook="b", tools=prioritised(highest=2.5, also_high=2, none="9"))
    assert served(catalog) == ["highest", "high", "also_high", "plain", "none", "low"]


def test_a_change_is_told_only_when_clients_can_see_it():
    catalog = Catalog()
    assert catalog.set_kernel("1", notebook="a", tools=tools("f"))
    assert not catalog.set_kernel("1", notebook="a", tools=tools("f"))
    assert not catalog.set_kernel("1", notebook="renamed", tools=tools("f"))
    assert catalog.set_kernel("1", notebook="renamed", tools=tools("f", description="new"))
    assert not catalog.remove_kernel("no such kernel")
    assert catalog.remove_kernel("1")
    assert not catalog.remove_kernel("1")
    assert catalog.entries() == ()


@pytest.mark.parametrize("name", ["top", "sales_top", "sales.top"])
def test_a_tool_is_found_by_its_own_name_its_long_name_and_its_full_name(name):
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top"))
    assert catalog.find(name) is catalog.entries()[0]


@pytest.mark.smoke
def test_a_name_that_two_notebooks_have_is_served_in_full_and_an_error_when_bare():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top", "only"))
    catalog.set_kernel("2", notebook="stock", tools=tools("top"))
    assert served(catalog) == ["sales_top", "only", "stock_top"]
    for name in ("stock_top", "stock.top"):
        assert catalog.find(name).kernel_id == "2"
        assert catalog.find(name).tool.name == "top"
    with pytest.raises(AmbiguousTool, match=r"Call 'sales_top' or 'stock_top' instead"):
        catalog.find("top")


def test_a_long_name_from_an_old_list_still_works_when_the_clash_is_over():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top"))
    catalog.set_kernel("2", notebook="stock", tools=tools("top"))
    assert catalog.remove_kernel("1")
    assert served(catalog) == ["top"]
    assert catalog.find("stock_top").kernel_id == "2"
    with pytest.raises(UnknownTool):
        catalog.find("sales_top")


def test_a_name_never_comes_to_mean_another_live_notebook_of_the_same_name():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("f"))
    catalog.set_kernel("2", notebook="sales", tools=tools("f"))
    catalog.remove_kernel("1")
    catalog.set_kernel("3", notebook="sales", tools=tools("f"))
    assert catalog.find("sales-2_f").kernel_id == "2"
    assert catalog.find("sales_f").kernel_id == "3"


def test_long_names_that_are_the_same_get_a_number():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=tools("b_c"))
    catalog.set_kernel("2", notebook="a_b", tools=tools("c"))
    catalog.set_kernel("3", notebook="z", tools=tools("b_c", "c"))
    assert served(catalog) == ["a_b_c", "a_b_c-2", "z_b_c", "z_c"]
    assert [catalog.find(name).kernel_id for name in ("a_b_c", "a_b_c-2")] == ["1", "2"]


def test_a_tool_that_is_called_like_a_long_name_keeps_its_name_if_it_comes_first():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=tools("f"))
    catalog.set_kernel("2", notebook="b", tools=tools("a_f"))
    assert served(catalog) == ["f", "a_f"]
    catalog.set_kernel("3", notebook="c", tools=tools("f"))
    assert served(catalog) == ["a_f-2", "a_f", "c_f"]
    assert catalog.find("a_f").kernel_id == "2"
    assert catalog.find("a.f").kernel_id == "1"


def test_a_tool_never_takes_the_long_name_that_clients_know_another_by():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=tools("f"))
    catalog.set_kernel("2", notebook="b", tools=tools("f"))
    catalog.set_kernel("2", notebook="b", tools=tools("f", "a_f"))
    assert served(catalog) == ["a_f", "b_f", "b_a_f"]
    assert catalog.find("a_f").kernel_id == "1"
    (explanation,) = [text for text in missing_in(catalog) if "b: a_f " in text]
    assert (
        "(listed as b_a_f): Clients know another tool, of another notebook, as 'a_f'" in explanation
    )
    catalog.remove_kernel("1")
    assert served(catalog) == ["f", "a_f"]
    assert catalog.find("b_a_f").kernel_id == "2"


def test_long_names_leave_room_for_the_prefix_of_clients_as_far_as_the_tools_own_name_does():
    own_names = ["f", "x" * 24, "x" * 40, "x" * 41, "x" * 55, "x" * 60, "x" * 64]
    catalog = Catalog()
    for notebook in ("a_notebook_with_a_long_name", "another_notebook_of_the_kind"):
        catalog.set_kernel(notebook, notebook=notebook, tools=tools(*own_names))
    lengths = [len(name) for name in served(catalog)]
    assert lengths[:7] == [26, 49, 49, 49 + 1, 64, 64, 64]
    assert [catalog.find(name).tool.name for name in served(catalog)] == own_names * 2
    assert served(catalog)[:2] == [
        "a_notebook_with_a_long_n_f",
        f"a_notebook_with_a_long_n_{'x' * 24}",
    ]


@pytest.mark.parametrize(
    ("notebook", "expected"),
    [
        ("my sales (2024)", "my_sales_2024_f"),
        ("v1.2", "v1_2_f"),
        ("a  __ b", "a_b_f"),
        ("Umsätze, 3ème", "Umsatze_3eme_f"),
        ("売上", "notebook_f"),
        ("", "notebook_f"),
        ("x" * 100, "x" * 24 + "_f"),
    ],
)
def test_a_notebooks_name_is_made_safe(notebook, expected):
    catalog = Catalog()
    catalog.set_kernel("1", notebook=notebook, tools=tools("f"))
    catalog.set_kernel("2", notebook="other", tools=tools("f"))
    assert served(catalog) == [expected, "other_f"]


def test_an_unknown_name_is_answered_with_the_closest_names_first():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=tools("plot", "top_customers"))
    with pytest.raises(UnknownTool, match=r"'top_customer'.*: top_customers, plot\."):
        catalog.find("top_customer")
    with pytest.raises(UnknownTool, match="No open notebook"):
        Catalog().find("f")


changes = st.lists(
    st.tuples(
        st.sampled_from("1234"),
        st.text(max_size=40) | st.sampled_from(["a", "a-2", "a_b", "b", "x" * 64]),
        st.none()
        | st.lists(
            st.text(max_size=80)
            | st.sampled_from(
                ["f", "g", "a_f", "a.f", "a_f-2", "b_f", "f-2", "x" * 63, "x" * 64, "a b"]
            ),
            max_size=5,
        ),
    ),
    max_size=12,
)


@given(changes)
def test_served_names_are_always_valid_unique_and_lead_back_to_their_tool(steps):
    catalog = Catalog()
    for kernel_id, notebook, names in steps:
        before = [(entry.name, entry.tool) for entry in catalog.entries()]
        if names is None:
            changed = catalog.remove_kernel(kernel_id)
        else:
            changed = catalog.set_kernel(kernel_id, notebook=notebook, tools=tools(*names))
        entries = catalog.entries()
        assert changed == (before != [(entry.name, entry.tool) for entry in entries])
        assert all(VALID.fullmatch(entry.name) for entry in entries)
        assert len({entry.name for entry in entries}) == len(entries)
        assert all(catalog.find(entry.name) == entry for entry in entries)


@given(changes)
def test_a_name_in_the_list_never_comes_to_mean_another_tool_of_a_kernel_that_stays(steps):
    catalog = Catalog()
    seen = {}
    for kernel_id, notebook, names in steps:
        if names is None:
            catalog.remove_kernel(kernel_id)
        else:
            catalog.set_kernel(kernel_id, notebook=notebook, tools=tools(*names))
        entries = catalog.entries()
        there = {(entry.kernel_id, entry.notebook, entry.tool.name) for entry in entries}
        # A bare name can become ambiguous, but no long name moves while its tool is there.
        for name, tool in seen.items():
            if tool in there:
                found = catalog.find(name)
                assert (found.kernel_id, found.notebook, found.tool.name) == tool
        seen = {name: tool for name, tool in seen.items() if tool in there}
        for entry in entries:
            if entry.name == entry.long_name != entry.tool.name:
                seen[entry.name] = (entry.kernel_id, entry.notebook, entry.tool.name)


@example([("1", "a", ["f"]), ("1", "", ["a.f"])])
@given(changes)
def test_the_names_that_an_ambiguous_name_is_answered_with_can_all_be_called(steps):
    catalog = Catalog()
    for kernel_id, notebook, names in steps:
        catalog.set_kernel(kernel_id, notebook=notebook, tools=tools(*(names or ())))
    for name in {entry.tool.name for entry in catalog.entries()}:
        try:
            catalog.find(name)
        except (UnknownTool, ToolGone):
            # No client was ever told this name. It may be the full name of a tool that has gone.
            assert not VALID.fullmatch(name)
        except AmbiguousTool as error:
            candidates, text = error.candidates, str(error)
        else:
            continue
        if VALID.fullmatch(name):
            assert len({catalog.find(other).kernel_id for other in candidates}) > 1
            assert all(repr(other) in text for other in candidates)


def test_the_list_of_a_thousand_tools_is_not_made_anew_for_each_request():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=tools(*(f"t{n}" for n in range(1000))))
    assert catalog.entries() is catalog.entries()


# -- what clients do not see -----------------------------------------------------------------------


def dropped(reason, at=None):
    return DroppedTool(reason, time.time() if at is None else at)


def missing_in(catalog):
    return [str(tool) for tool in catalog.list_missing_tools()]


def test_a_name_that_two_notebooks_have_is_explained_for_both():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top", "other"))
    catalog.set_kernel("2", notebook="costs", tools=tools("top"))
    first, second = missing_in(catalog)
    assert first.startswith("sales: top (listed as sales_top): Another notebook also has a tool")
    assert second.startswith("costs: top (listed as costs_top): Another notebook also has a tool")


@pytest.mark.parametrize("reserved", [True, False])
def test_a_name_of_the_meta_tools_is_explained(reserved):
    catalog = Catalog()
    if reserved:
        catalog.reserve(["call_notebook_tool"])
    catalog.set_kernel("1", notebook="sales", tools=tools("call_notebook_tool"))
    (text,) = missing_in(catalog)
    assert "(listed as sales_call_notebook_tool): A bridge that runs with --meta-tools" in text


def test_a_name_that_clients_do_not_accept_is_explained():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("what?", "x" * 65))
    first, second = missing_in(catalog)
    assert "sales: what? (listed as what_): Clients accept tool names of at most 64" in first
    assert f"(listed as {'x' * 64}): Clients accept" in second


def test_dropped_tools_are_explained_until_they_return_although_no_client_sees_a_change():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top"))
    assert not catalog.set_kernel(
        "1", notebook="sales", tools=tools("top"), missing={"old": dropped("`old` was deleted.")}
    )
    (missing,) = missing_in(catalog)
    assert missing.startswith("sales: old (not listed): `old` was deleted. That was at ")
    assert not catalog.set_kernel("1", notebook="sales", tools=tools("top"))
    assert missing_in(catalog) == []


def related(name, *others):
    return messages.ToolInfo(
        name=name, description="Do.", input_schema={}, meta={meta_keys.RELATED: list(others)}
    )


def test_a_tool_tells_of_the_related_tools_that_there_are_as_they_are_served():
    catalog = Catalog()
    first = [related("f", "g", "top", "nothing"), *tools("g", "top")]
    catalog.set_kernel("1", notebook="a", tools=first)
    catalog.set_kernel("2", notebook="b", tools=[*tools("top"), related("h", "nothing")])
    told = {entry.name: entry.tool for entry in catalog.entries()}
    assert told["f"].description == "Do.\n\nSee also: g, a_top."
    assert told["f"].meta == {meta_keys.RELATED: ["g", "a_top"]}
    assert (told["h"].description, told["h"].meta) == ("Do.", None)
    assert catalog.find("a.f").tool == told["f"]


def test_clients_are_told_when_a_related_tool_comes_or_goes():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="a", tools=[related("f", "other")])
    assert catalog.set_kernel("2", notebook="b", tools=tools("other"))
    assert catalog.entries()[0].tool.description == "Do.\n\nSee also: other."
    assert catalog.remove_kernel("2")
    assert catalog.entries()[0].tool.description == "Do."


# -- names whose tools were there some minutes ago -------------------------------------------------

AT = r"at \d\d:\d\d\."


def gone(catalog, name):
    with pytest.raises(ToolGone) as raised:
        catalog.find(name)
    return str(raised.value)


def test_a_dropped_tool_is_explained_with_the_kernels_reason_and_the_time():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top", "low"))
    catalog.set_kernel(
        "1", notebook="sales", tools=tools("low"), missing={"top": dropped("`top` was deleted.")}
    )
    for name in ("top", "sales_top", "sales.top"):
        assert re.fullmatch(
            f"The tool '{name}' of the notebook 'sales' is gone. `top` was deleted. That was {AT} "
            "If it is still needed, define it again and run its cell.",
            gone(catalog, name),
        )
    catalog.set_kernel("1", notebook="sales", tools=tools("low", "top"))
    assert catalog.find("sales.top") is catalog.find("top")


def test_a_tool_that_was_dropped_before_the_bridge_came_is_explained_for_some_minutes():
    catalog = Catalog()
    missing = {
        "top": dropped("`top` was deleted."),
        "low": dropped("`low` was deleted.", at=time.time() - KEEP - 1),
    }
    catalog.set_kernel("1", notebook="sales", tools=[], missing=missing)
    for name in ("top", "sales_top", "sales.top"):
        assert re.search(f"`top` was deleted. That was {AT} If it is still", gone(catalog, name))
    assert [tool.tool for tool in catalog.list_missing_tools()] == ["top"]
    with pytest.raises(UnknownTool):
        catalog.find("low")
    with pytest.raises(UnknownTool):
        catalog.find("stock.top")


def test_a_tool_that_went_when_another_came_was_not_declared():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top", description="Best."))
    catalog.set_kernel("1", notebook="sales", tools=tools("best", description="Best."))
    assert "none of them declared it" in gone(catalog, "top")


def test_long_names_of_a_renamed_notebook_lead_to_the_new_ones():
    catalog = Catalog()
    catalog.set_kernel("0", notebook="other", tools=tools("top"))
    catalog.set_kernel("1", notebook="sales", tools=tools("top"))
    catalog.set_kernel("1", notebook="turnover", tools=tools("top"))
    assert "Call 'turnover_top' instead." in gone(catalog, "sales_top")


def test_the_tools_of_a_kernel_that_left_are_explained_for_each():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=tools("top", "low"))
    catalog.remove_kernel("1", MissingTool("sales", None, "It left.", "Call it back."))
    assert gone(catalog, "low") == (
        "The tool 'low' of the notebook 'sales' is gone. It left. Call it back."
    )
    catalog.explain_removal("1", MissingTool("sales", None, "It crashed.", "Restart it."))
    assert gone(catalog, "sales.top").endswith("It crashed. Restart it.")
    catalog.set_kernel("2", notebook="stock", tools=tools("top"))
    assert catalog.find("top").kernel_id == "2"


def test_both_notebooks_that_have_a_tool_of_one_name_are_told_why_and_what_to_do():
    catalog = Catalog()
    catalog.set_kernel("a", notebook="sales", tools=tools("rain", "snow"))
    catalog.set_kernel("b", notebook="stock", tools=tools("rain"))
    names = catalog.find_listed_names()
    ((first,), (second,)) = names["a"], names["b"]
    assert (first.tool, first.name, second.name) == ("rain", "sales_rain", "stock_rain")
    assert first.reason == "Another notebook also has a tool 'rain'."
    assert "Rename one of them" in first.next_step


# -- kinds -----------------------------------------------------------------------------------------


def prompt(name, description=""):
    schema = {"type": "object"}
    return messages.ToolInfo(name=name, input_schema=schema, description=description, kind="prompt")


def test_each_kind_has_a_list_and_names_of_its_own():
    catalog = Catalog()
    catalog.reserve(["list_notebook_tools"])
    catalog.set_kernel("1", notebook="sales", tools=[*tools("top"), prompt("report")])
    catalog.set_kernel("2", notebook="ops", tools=[prompt("top"), prompt("list_notebook_tools")])
    assert [entry.name for entry in catalog.entries()] == ["top"]
    names = [entry.name for entry in catalog.entries("prompt")]
    assert names == ["report", "top", "list_notebook_tools"]
    assert catalog.entries("resource") == ()
    assert catalog.find("top").notebook == "sales"
    assert catalog.find("top", "prompt").notebook == "ops"
    assert [entry.tool.kind for entry in catalog.all_entries] == ["tool", *["prompt"] * 3]


def test_a_name_of_another_kind_says_what_it_is():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[*tools("top"), prompt("report")])
    with pytest.raises(OtherKind, match="'report' is a prompt, not a tool: a program gets it"):
        catalog.find("report")
    with pytest.raises(OtherKind, match=r"'sales\.top' is a tool, not a prompt: call it"):
        catalog.find("sales.top", "prompt")
    with pytest.raises(UnknownTool, match=r"Unknown prompt: 'rep'.*The prompts are: report"):
        catalog.find("rep", "prompt")


def test_a_change_of_one_kind_leaves_the_lists_of_the_others_as_they_are():
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[*tools("top"), prompt("report")])
    listed, prompts = catalog.entries(), catalog.entries("prompt")
    assert catalog.set_kernel("1", notebook="sales", tools=[*tools("top"), prompt("new")])
    assert catalog.entries() is listed
    assert catalog.entries("prompt") is not prompts
    assert catalog.set_kernel("1", notebook="sales", tools=[*tools("low"), prompt("new")])
    with pytest.raises(ToolGone, match="The prompt 'report' of the notebook 'sales' is gone"):
        catalog.find("report", "prompt")
