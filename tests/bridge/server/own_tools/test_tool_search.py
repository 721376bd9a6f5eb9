"""Which tools a search finds, and in which order."""

import pytest

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.server.own_tools.tool_search import ToolSearch
from mcp_notebook.wire.messages import ToolInfo

REGION = {
    "properties": {
        "area": {"description": "Where the shop is.", "enum": ["Bavaria", "Saxony"]},
        "kind": {"$ref": "#/$defs/Kind"},
        "day": {"anyOf": [{"const": "today"}, {"examples": ["Whitsun"]}]},
    },
    "$defs": {"Kind": {"title": "Wholesale"}},
}
TAGGED = {meta_keys.TAGS: ["kpi", 3]}
TOOLS = [
    ToolInfo("top", REGION, "Best buyers", "Clients by revenue.\n\nUse for rankings.", meta=TAGGED),
    ToolInfo("plotTemperature", {"properties": {"x": 1, "y": None}}, description="Élan of July"),
    ToolInfo("noop", {"properties": []}, meta={meta_keys.TAGS: "kpi"}),
]


def make_search(tools=TOOLS, **options):
    catalog = Catalog()
    catalog.set_kernel("k", notebook="sales_2026", tools=tools)
    return catalog, ToolSearch(PermittedTools(catalog), **options)


def find(query, tools=TOOLS, caller=OWNER):
    return [entry.name for entry in make_search(tools)[1].rank(caller, query)]


@pytest.mark.parametrize(
    "query",
    [
        *("top", "best buyer", "revenues", "ranking", "kpi", "areas", "shops", "Bavaria"),
        *("wholesale", "whitsun"),
    ],
)
def test_a_tool_is_found_by_all_that_its_author_wrote(query):
    assert find(query)[0] == "top"


@pytest.mark.parametrize("query", ["plotting temperatures", "temp", "plots", "elan", "ÉLAN"])
def test_word_endings_beginnings_accents_and_joined_words_do_not_matter(query):
    assert find(query) == ["plotTemperature"]


def test_a_name_counts_more_than_a_description_and_equals_keep_their_order():
    tools = [
        ToolInfo("a", {}, description="About invoices."),
        ToolInfo("b", {}, description="About invoices."),
        ToolInfo("invoices", {}, description="About letters."),
    ]
    assert find("invoice", tools) == ["invoices", "a", "b"]


def test_words_that_say_nothing_do_not_count_but_words_with_their_stem_do():
    tools = [ToolInfo("a", {}, description="Use this for all."), ToolInfo("letters", {})]
    assert find("please show me all the letters", tools) == ["letters"]
    assert find("zebra", tools) == []
    assert find("", tools) == ["a", "letters"]


def test_words_of_time_and_numbers_weigh_nothing():
    tools = [ToolInfo("sales_today", {}, description="What we sold this month: 2024."),
             ToolInfo("weather", {}, description="How it is.")]  # fmt: skip
    assert find("the weather today, this month, in March 2024", tools) == ["weather"]
    assert find("today 2024", tools) == []


def test_a_changed_list_is_searched_as_it_is_now():
    catalog, search = make_search()
    assert [entry.name for entry in search.rank(OWNER, "zebra")] == []
    catalog.set_kernel("k", notebook="sales_2026", tools=[TOOLS[0], ToolInfo("zebra", {})])
    assert [entry.name for entry in search.rank(OWNER, "zebra")] == ["zebra"]
    assert [entry.name for entry in search.rank(OWNER, "plot")] == []


def test_each_set_of_permissions_has_its_own_index_within_a_bound():
    _, search = make_search(max_indexes=2)
    for name in ("top", "plotTemperature", "noop", "top"):
        caller = Caller(name=name, permissions=Permissions(tools=(name,)))
        assert [entry.name for entry in search.rank(caller, "top plot noop")] == [name]
    assert len(search._indexes) == 2
