"""The tools of ``--meta-tools``: what they answer, and how the server offers them."""

import json
import re
from contextlib import asynccontextmanager

import anyio
import pytest
from clients import text_of
from contents import only_text
from judge import in_process
from linked_servers import linked_server, make_server
from listing import is_unknown, list_tools
from live import TIMEOUT, kernel_with, record_of
from mcp import Client
from mcp_types import ElicitResult, ImageContent
from schemas import check_schema

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER
from mcp_notebook.bridge.server.calls.late_results import LateResults
from mcp_notebook.bridge.server.own_tools.meta_tools import (
    CALL,
    DESCRIBE,
    LIST,
    NO_TOOLS,
    ONLY_TOOLS,
    RESULT,
    SEARCH,
    TOOLS,
    answer,
)
from mcp_notebook.bridge.server.own_tools.tool_search import ToolSearch
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.errors import AmbiguousTool, InvalidArguments
from mcp_notebook.settings.limits import Limits
from mcp_notebook.text.missing_tools import READ_RESOURCE
from mcp_notebook.wire import messages

SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "default": None}},
    "additionalProperties": False,
}
NAMES = {tool.name for tool in TOOLS}


def info(name, description="", schema=None):
    return messages.ToolInfo(name=name, description=description, input_schema=schema or SCHEMA)


def catalog_of(**notebooks):
    catalog = Catalog()
    for notebook, tools in notebooks.items():
        catalog.set_kernel(notebook, notebook=notebook, tools=tools)
    return catalog


def asked(catalog, name, /, caller=OWNER, **arguments):
    tools = PermittedTools(catalog)
    return answer(name, arguments, tools, caller, search=ToolSearch(tools))


# -- what they are ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [TOOLS[0], *ONLY_TOOLS], ids=lambda tool: tool.name)
def test_their_schemas_are_valid_and_of_objects(tool):
    check_schema(tool.input_schema)
    assert tool.input_schema["type"] == "object"
    assert tool.input_schema["additionalProperties"] is False
    assert all(
        part.keys() & {"description", "default"}
        for part in tool.input_schema["properties"].values()
    )
    assert "title" not in str(tool.input_schema)
    assert tool.description


def test_only_those_that_call_nothing_are_read_only():
    assert {tool.name for tool in TOOLS if tool.annotations["readOnlyHint"]} == {
        LIST,
        DESCRIBE,
        RESULT,
    }


# -- list ------------------------------------------------------------------------------------------


def test_the_list_has_each_tools_name_notebook_and_first_line():
    catalog = catalog_of(
        sales=[info("top", "\n Best customers.\n\nMore."), info("total")], costs=[info("total")]
    )
    result = asked(catalog, LIST)
    assert only_text(result).splitlines() == [
        "- top (notebook sales): Best customers.",
        "- sales_total (notebook sales)",
        "- costs_total (notebook costs)",
    ]


# -- search ----------------------------------------------------------------------------------------


def test_a_search_shows_the_best_tools_with_their_arguments_and_counts_the_others():
    tools = [info(f"sum_{n}", "Add numbers.") for n in range(8)]
    catalog = catalog_of(sales=[*tools, info("late", "Invoices that are overdue.\n\nMore.")])
    text = only_text(asked(catalog, SEARCH, query="which invoice is overdue?"))
    assert text == (
        "late (notebook sales)\nInvoices that are overdue.\n\nMore.\n"
        f"Arguments: {json.dumps(SCHEMA, separators=(',', ':'))}\n\n"
        f"The other tools are: {', '.join(f'sum_{i}' for i in range(8))}. `{DESCRIBE}` shows one."
    )
    text = only_text(asked(catalog, SEARCH, query="adding", limit=3))
    assert re.findall(r"^sum_\d", text, re.MULTILINE) == ["sum_0", "sum_1", "sum_2"]
    assert text.endswith("\n\n5 more tools fit less well.")


def test_a_search_leaves_long_schemas_to_the_description_and_names_no_empty_ones():
    long = {"type": "object", "properties": {"x": {"type": "string", "description": "y" * 9_000}}}
    empty = {"type": "object", "properties": {}}
    catalog = catalog_of(sales=[info("big", "z" * 9_000, long), info("small", "", empty)])
    text = only_text(asked(catalog, SEARCH, query="big small"))
    assert f"Arguments: `{DESCRIBE}` shows them." in text
    assert "It takes no arguments." in text
    assert len(text) < 1_000


def test_a_search_in_vain_names_all_tools_and_one_without_words_the_notebooks():
    catalog = catalog_of(sales=[info("top"), info("total")], costs=[info("late")])
    text = only_text(asked(catalog, SEARCH, query="zebra"))
    assert text == (
        f"No tool fits 'zebra'.\n\nThe tools are: top, total, late. `{DESCRIBE}` shows one."
    )
    text = only_text(asked(catalog, SEARCH, query=" "))
    assert text.startswith("top (note")
    assert text.endswith("There are 3 tools in these notebooks: sales (2), costs (1).")
    many = catalog_of(sales=[info(f"tool_{number}") for number in range(210)])
    text = only_text(asked(many, SEARCH, query="zebra"))
    assert "tool_199, and 10 more. " in text
    assert only_text(asked(Catalog(), SEARCH, query="x")) == NO_TOOLS


@pytest.mark.parametrize("arguments", [{}, {"query": 3}, {"query": "x", "limit": 51}])
def test_a_search_with_wrong_arguments_is_refused(arguments):
    with pytest.raises(InvalidArguments, match=f"{SEARCH}: .*(query|limit)`"):
        asked(catalog_of(sales=[info("top")]), SEARCH, **arguments)


def test_a_caller_finds_only_what_it_may_call():
    catalog = catalog_of(sales=[info("top", "Best customers.")], costs=[info("cut", "Customers.")])
    caller = Caller(name="ada", permissions=Permissions(tools=("costs.*",)))
    text = only_text(asked(catalog, SEARCH, caller, query="customers"))
    assert "cut" in text
    assert "top" not in text
    assert "sales" not in only_text(asked(catalog, SEARCH, caller, query="zebra"))


# -- describe --------------------------------------------------------------------------------------


def test_the_description_is_whole_and_has_the_input_schema():
    result = asked(catalog_of(sales=[info("top", "Best.\n\nMore.")]), DESCRIBE, name="top")
    assert only_text(result).startswith("top (notebook sales)\n\nBest.\n\nMore.\n\n")
    assert '"default": null' in only_text(result)


@pytest.mark.parametrize("name", [DESCRIBE, CALL])
def test_a_name_of_two_notebooks_is_told_with_both(name):
    catalog = catalog_of(sales=[info("top")], costs=[info("top")])
    with pytest.raises(AmbiguousTool, match=r"'sales_top' or 'costs_top'"):
        asked(catalog, name, name="top")


# -- call ------------------------------------------------------------------------------------------


def test_a_call_names_the_tool_and_its_arguments():
    catalog = catalog_of(sales=[info("top")])
    call = asked(catalog, CALL, name="sales_top", arguments={"region": "EU"})
    assert call.entry is catalog.find("top")
    assert call.arguments == {"region": "EU"}
    assert asked(catalog, CALL, name="top").arguments == {}


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        (LIST, {"a": 1}, f"{LIST}: .* unknown field `a`. Its arguments: none."),
        (DESCRIBE, {}, f"{DESCRIBE}: .* missing required field `name`"),
        (DESCRIBE, {"name": 3}, f"{DESCRIBE}: Expected `str`, got `int` - at `\\$.name`"),
        (DESCRIBE, {"name": "top", "a": 1}, "unknown field `a`. Its arguments: 'name'"),
        (RESULT, {}, f"{RESULT}: .* missing required field `handle`"),
        (CALL, {"name": None}, "Expected `str`, got `null`"),
        (CALL, {"name": "top", "arguments": [1]}, "Expected `object`, got `array`"),
        (CALL, {"name": "top", "arguments": '{"a": 1}'}, "Expected `object`, got `str`"),
        (CALL, {"name": "top", "year": 1}, "`year`.* own arguments go into 'arguments'"),
    ],
)
def test_wrong_arguments_of_their_own_are_told_by_name(name, arguments, sentence):
    with pytest.raises(InvalidArguments, match=sentence) as refused:
        asked(catalog_of(sales=[info("top")]), name, **arguments)
    assert len(str(refused.value).splitlines()) == 1


def test_a_message_about_wrong_arguments_stays_short():
    with pytest.raises(InvalidArguments) as refused:
        asked(Catalog(), CALL, **{"x" * 10_000: 1})
    assert len(str(refused.value)) < 400


# -- their names -----------------------------------------------------------------------------------


def test_a_notebooks_tool_of_such_a_name_is_served_under_its_long_name():
    catalog = catalog_of(sales=[info(CALL), info("top")])
    catalog.reserve(NAMES)
    assert [entry.name for entry in catalog.entries()] == [f"sales_{CALL}", "top"]
    assert asked(catalog, CALL, name=f"sales_{CALL}").entry.tool.name == CALL


# -- in a server -----------------------------------------------------------------------------------


@asynccontextmanager
async def served(catalog, era, kernel=None, ready=None, *, server_options=None, **options):
    """Yield a client of a server with them; of a kernel's tools, too, if one is given."""
    async with Links(catalog) as links:
        if kernel is not None:
            await links.connect(record_of(kernel))
        server_options = {"meta_tools": True} | (server_options or {})
        server_options |= {} if ready is None else {"ready": ready}
        server = make_server(catalog, links, **server_options)
        async with Client(in_process(server), mode=era, **options) as client:
            with anyio.fail_after(TIMEOUT):
                yield client


NOTEBOOK = """%%mcp_tool
from typing import Annotated
from pydantic import Field
from mcp_notebook import Image, Result, Text

def tenth(n: Annotated[int, Field(ge=1, le=10)]):
    "A number, as text, picture and structure."
    import io, PIL.Image
    PIL.Image.new("RGB", (2, 2)).save(data := io.BytesIO(), "png")
    return Result([Text(str(n)), Image(data.getvalue())], structured={"n": n})

async def forever():
    "Never ends."
    import asyncio
    await asyncio.sleep(600)
"""
LATE = """%%mcp_tool --task --run thread
import threading
from mcp_notebook import Context

go = threading.Event()
runs = []

def simulate(year: int, ctx: Context) -> dict[str, int]:
    "Simulate until somebody says so."
    runs.append(year)
    ctx.progress(1, 2, "half")
    go.wait()
    return {"year": year}

def rename(ctx: Context) -> str:
    "Ask when somebody says so."
    go.wait()
    return f"named {ctx.elicit('Name?', str).data}"
"""


notebook = kernel_with(NOTEBOOK, LATE)


@pytest.mark.anyio
async def test_they_come_first_and_the_instructions_tell_of_them(era):
    catalog = catalog_of(sales=[info("top"), info(LIST)])
    async with served(catalog, era) as client:
        names = [tool.name for tool in await list_tools(client)]
        assert CALL in client.instructions
        assert NO_TOOLS not in client.instructions
    assert names == [LIST, DESCRIBE, CALL, RESULT, "top", f"sales_{LIST}"]


@pytest.mark.anyio
async def test_they_are_there_without_a_kernel(era):
    async with served(Catalog(), era) as client:
        assert {tool.name for tool in await list_tools(client)} == NAMES
        assert CALL in client.instructions
        assert NO_TOOLS in client.instructions
        listed = await client.call_tool(LIST, {})
    assert not listed.is_error
    assert text_of(listed) == NO_TOOLS


@pytest.mark.anyio
async def test_they_may_be_the_only_ones_in_the_list_and_cost_little(notebook, era):
    catalog = catalog_of(sales=[info(f"sum_{n}", "Add.") for n in range(100)])
    options = {"meta_tools": "only"}
    async with served(catalog, era, notebook, server_options=options) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [SEARCH, DESCRIBE, CALL, RESULT, READ_RESOURCE]
        size = sum(len(tool.model_dump_json(exclude_none=True, by_alias=True)) for tool in tools)
        assert size < 5_000  # 1,500 tokens have at least three characters each
        assert SEARCH in client.instructions
        found = await client.call_tool(SEARCH, {"query": "a picture of a number"})
        assert text_of(found).startswith("tenth (notebook ")
        called = await client.call_tool(CALL, {"name": "tenth", "arguments": {"n": 3}})
        assert called.structured_content["n"] == 3
        assert is_unknown(await client.call_tool(LIST, {}))


@pytest.mark.smoke
@pytest.mark.anyio
async def test_a_tool_is_listed_described_and_called(notebook, era):
    async with served(Catalog(), era, notebook) as client:
        listed = await client.call_tool(LIST, {})
        described = await client.call_tool(DESCRIBE, {"name": "tenth"})
        direct = await client.call_tool("tenth", {"n": 3})
        called = await client.call_tool(CALL, {"name": "tenth", "arguments": {"n": 3}})
    names = re.findall(r"^- (\w+) ", text_of(listed), re.MULTILINE)
    assert names == ["tenth", "forever", "simulate", "rename"]
    assert '"maximum": 10' in text_of(described)
    # Each call has an address of its own for its picture.
    one, other = (re.sub(r"\w+/picture", "", str(result)) for result in (called, direct))
    assert one == other
    assert called.structured_content["n"] == 3
    assert isinstance(called.content[0], ImageContent)


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [{}, {"n": 11}, {"n": 1, "m": 2}])
async def test_wrong_arguments_of_the_tool_are_told_as_by_the_tool(notebook, era, arguments):
    async with served(Catalog(), era, notebook) as client:
        direct = await client.call_tool("tenth", arguments)
        called = await client.call_tool(CALL, {"name": "tenth", "arguments": arguments})
    assert called.is_error
    assert called == direct


@pytest.mark.anyio
@pytest.mark.parametrize("name", [DESCRIBE, CALL])
async def test_an_unknown_name_is_a_result_since_it_is_an_argument(era, name):
    async with served(catalog_of(sales=[info("top")]), era) as client:
        result = await client.call_tool(name, {"name": "tpo"})
    assert result.is_error
    assert "are: top" in text_of(result)


@pytest.mark.anyio
async def test_a_kernel_that_is_gone_is_a_result_that_says_so(era):
    async with served(catalog_of(sales=[info("top")]), era) as client:
        result = await client.call_tool(CALL, {"name": "top"})
    assert result.is_error
    assert "'top' is gone" in text_of(result)


@pytest.mark.anyio
async def test_a_call_counts_as_one_of_those_that_a_bridge_carries(notebook, era):
    refused = []
    one = Limits(max_caller_calls=1)
    async with (
        served(Catalog(), era, notebook, server_options={"limits": one}) as client,
        anyio.create_task_group() as tasks,
    ):

        async def call():
            refused.append(await client.call_tool(CALL, {"name": "forever"}))
            tasks.cancel_scope.cancel()

        tasks.start_soon(call)
        tasks.start_soon(call)
    (result,) = refused
    assert "one caller can have 1 at a time" in text_of(result)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "arguments"), [(LIST, {}), (DESCRIBE, {"name": "top"}), (CALL, {"name": "top"})]
)
async def test_the_first_use_waits_until_the_first_tools_can_be_expected(era, name, arguments):
    catalog = Catalog()
    waits, known = anyio.Event(), anyio.Event()

    async def ready():
        waits.set()
        await known.wait()

    async with served(catalog, era, ready=ready) as client, anyio.create_task_group() as tasks:

        async def links():
            await waits.wait()
            catalog.set_kernel("1", notebook="sales", tools=[info("top")])
            known.set()

        tasks.start_soon(links)
        result = await client.call_tool(name, arguments)
    assert "top" in text_of(result)
    assert "Unknown tool" not in text_of(result)


# -- calls that take long --------------------------------------------------------------------------

SOON = {"task_after": 0.2}


def handle_of(result):
    """Return the handle that the answer to a long call names."""
    assert not result.is_error
    return re.search(
        f"call `{RESULT}` with the handle '([^']+)' to get its result", text_of(result)
    )[1]


@pytest.mark.anyio
async def test_a_long_call_is_answered_with_a_handle_for_its_result(notebook, era):
    notebook.ok("go.clear(); runs.clear()")
    request = {"name": "simulate", "arguments": {"year": 2015}}
    async with served(Catalog(), era, notebook, server_options=SOON) as client:
        told = await client.call_tool(CALL, request)
        assert text_of(told).startswith(
            "The call of 'simulate' is still running (half (1 of 2)). It"
        )
        handle = handle_of(told)
        assert handle.startswith("simulate-")
    # Another server finds it, too.
    async with (
        served(Catalog(), era, notebook, server_options=SOON) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(anyio.to_thread.run_sync, notebook.ok, "go.set()")
        for _ in range(2):  # also after its end
            result = await client.call_tool(RESULT, {"handle": handle})
            assert text_of(result) == '{"year":2015}'
    notebook.ok("assert runs == [2015], runs")


@pytest.mark.anyio
async def test_who_has_waited_for_a_result_for_long_gets_its_handle_again(notebook):
    notebook.ok("go.clear(); runs.clear()")
    async with linked_server(notebook, meta_tools=True, **SOON) as (server, _):
        async with Client(in_process(server), mode="auto") as client:
            handle = handle_of(await client.call_tool("simulate", {"year": 2016}))
        profile = ClientProfile("2026-07-28", messages.ClientInfo())
        request = ClientRequest(
            profile=profile, id=1, caller=OWNER, meta={}, is_stdio=True, channel=None
        )
        late = LateResults(server.tasks.finder, wait_limit=0.2)
        again = await late.wait(request, handle, {}, NO_LISTENER)
        assert f"with the handle {handle!r} to get its result" in only_text(again)
    notebook.ok("go.set()")


@pytest.mark.anyio
async def test_who_waits_for_a_result_is_asked_what_the_tool_asks(notebook, era):
    notebook.ok("go.clear()")

    async def answer_it(_context, params):
        assert params.message == "Name?"
        return ElicitResult(action="accept", content={"value": "Ann"})

    options = {"server_options": SOON, "elicitation_callback": answer_it}
    async with served(Catalog(), era, notebook, **options) as client:
        handle = handle_of(await client.call_tool(CALL, {"name": "rename"}))
        await anyio.to_thread.run_sync(notebook.ok, "go.set()")
        result = await client.call_tool(RESULT, {"handle": handle})
    assert text_of(result) == "named Ann"


@pytest.mark.anyio
@pytest.mark.parametrize("handle", ["simulate", "simulate-1-2", "", "é\0"])
async def test_an_unknown_handle_is_a_result_that_says_so(notebook, era, handle):
    async with served(Catalog(), era, notebook) as client:
        result = await client.call_tool(RESULT, {"handle": handle})
    assert result.is_error
    assert text_of(result).startswith("This client has no ")
