"""The figures of the evals, computed anew, are those of the page."""

import json

import pytest
from call_repair import Reply, correct, repair
from eval_servers import serve_notebook
from make_evals import PAGE, fill_in
from measure_results import write_results
from pool_functions import FUNCTIONS, echo
from run_evals import PLACE, measure
from search_queries import QUERIES
from tokens import load_tokenizer
from wrong_calls import WRONG_CALLS, WrongCall

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.server.forms.tool_form import VERSIONS, make_tool_form
from mcp_notebook.bridge.server.own_tools.tool_search import ToolSearch
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.tools.declared_tool import make_tool


class Declared:
    """The functions as tools of mcp-notebook, without a kernel and a client."""

    def __init__(self):
        self.tools = {function.__name__: make_tool(echo(function)) for function in FUNCTIONS}
        catalog = Catalog()
        infos = [tool.info for tool in self.tools.values()]
        catalog.set_kernel("pool", notebook="pool", tools=infos)
        self.search = ToolSearch(PermittedTools(catalog))

    async def list_entries(self):
        return [make_tool_form(name, tool.info, VERSIONS[-1]) for name, tool in self.tools.items()]

    async def call(self, name, arguments):
        function, schema = self.tools[name].function, self.tools[name].schema
        try:
            return Reply("", json.loads(function(**schema.validate(arguments))))
        except InvalidArguments as error:
            return Reply(str(error), None)

    async def find(self, query):
        return [entry.tool.name for entry in self.search.rank(OWNER, query)]


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def declared():
    return Declared()


@pytest.fixture(scope="module")
async def measured(anyio_backend, declared):
    return await measure(declared)


@pytest.fixture(scope="module")
def kept():
    return json.loads(PLACE.read_text(encoding="utf-8"))


def drop_tokens(figures):
    """Return figures without those that depend on an installed tokenizer."""
    if not isinstance(figures, dict):
        return figures
    return {key: drop_tokens(item) for key, item in figures.items() if "tokens" not in key}


def test_the_pool_has_all_tools_that_are_asked_for():
    names = {function.__name__ for function in FUNCTIONS}
    assert len(names) == len(FUNCTIONS)
    assert len(dict(QUERIES)) == len(QUERIES)
    assert {tool for _, tool in QUERIES} <= names
    assert {wrong.tool for wrong in WRONG_CALLS} <= names


@pytest.mark.anyio
async def test_what_was_meant_is_what_the_function_gets(declared):
    for wrong in WRONG_CALLS:
        reply = await declared.call(wrong.tool, wrong.meant)
        assert {name: reply.received[name] for name in wrong.meant} == wrong.meant


def test_the_figures_of_the_page_are_those_of_the_code(measured, kept):
    ours = kept["servers"]["mcp-notebook"]
    assert drop_tokens(measured) == drop_tokens(ours), (
        "run `python tests/evals/run_evals.py --keep`"
    )
    if load_tokenizer() is not None:
        assert measured == ours


def test_results_have_the_size_that_the_page_is_made_of(kept):
    """Libraries write some values differently in other versions."""
    ours = kept["results"]["mcp-notebook"]
    assert ours["unanswered"] == []
    # Only those that the other servers can show, too.
    sizes = {name: len(text) for name, text in write_results().items() if name in ours["sizes"]}
    assert sum(sizes.values()) == pytest.approx(sum(ours["sizes"][name] for name in sizes), rel=0.1)


def test_the_page_shows_the_figures():
    text = PAGE.read_text(encoding="utf-8")
    assert fill_in(text) == text, "run `python docs/make_evals.py`"


def test_the_figures_stay_good(measured, kept):
    theirs = kept["servers"]["FastMCP"]
    assert measured["queries"]["found"] >= 48
    assert measured["wrong_calls"]["misunderstood"] == 0
    assert measured["wrong_calls"]["never"] == 0
    assert measured["wrong_calls"]["message_characters"] < 80
    assert measured["entries"]["characters"] <= 1.02 * theirs["entries"]["characters"]
    assert measured["refused"]["OpenAI"] == measured["refused"]["Anthropic"] == []


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_client_of_a_real_notebook_gets_the_same_figures(tmp_path, measured):
    async with serve_notebook(tmp_path) as server:
        assert await measure(server) == measured


# -- the rule that corrects calls ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "meant", "text", "corrected"),
    [
        ({"a": "eu"}, {"a": "EU"}, "a: got 'eu' (string); allowed: 'EU', 'US'.", {"a": "EU"}),
        ({"a": "eu"}, {"a": "EU"}, "b: allowed: 'EU', 'US'.", {"a": "eu"}),
        ({"a": "eu"}, {"a": "EU"}, "a is wrong", {"a": "eu"}),
        ({"a": "1"}, {"a": 1}, "a: got '1' (string); allowed: integer.", {"a": 1}),
        ({"a": 1}, {"a": []}, "a: got [] (array); allowed: boolean.", {"a": 1}),
        ({"a": 9}, {"a": 5}, "a: got 9 (integer); allowed: at most 5.", {"a": 5}),
        ({"a": 9}, {"a": 5}, "a: too large", {"a": 9}),
        ({"b": 1}, {"a": 1}, "b: no such parameter; did you mean 'a'?", {"a": 1}),
        ({"b": 1}, {"a": 1}, "b: unexpected", {}),
        ({}, {"a": 1}, "a: missing", {"a": 1}),
        ({"a": {"b": "x"}}, {"a": {"b": 2}}, "a.b: allowed: integer", {"a": {"b": 2}}),
        ({"a": [1, "x"]}, {"a": [1, 2]}, "a[1]: allowed: integer", {"a": [1, 2]}),
    ],
)
def test_a_place_is_corrected_if_the_message_names_it_and_what_is_allowed(
    sent, meant, text, corrected
):
    assert correct(sent, meant, text) == corrected


@pytest.mark.anyio
async def test_a_call_that_is_taken_in_another_sense_counts_as_misunderstood():
    async def call(_name, arguments):
        return Reply("", {"n": 10} | arguments)

    outcome = await repair(WrongCall("null", "f", {}, {"n": 5}), call)
    assert outcome.is_misunderstood
    assert not outcome.is_understood
