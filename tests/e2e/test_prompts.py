"""Prompts from cells, as the official client gets them in both eras."""

import anyio
import pytest
from clients import ERAS, Changes, connected, until_listed
from live import TIMEOUT
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, PromptReference

pytestmark = pytest.mark.anyio

SETUP = """
import datetime as dt
from enum import Enum
from typing import Literal
import pandas as pd
from mcp_notebook import Context, Image, Message, Resource, Text, mcp_prompt, mcp_tool
df = orders = pd.DataFrame({"region": ["EU", "US"], "revenue": [3, 4]})
class Size(Enum):
    SMALL = "small"
    LARGE = "large"
"""
REPORT = """%%mcp_prompt weekly_report(year: int, region: Literal["EU", "US"] = "EU") --title Report
# Weekly report

Write a report on **{year}** for {region}. Give figures as JSON, like `{{"sum": 1}}`.

$\\frac{{1}}{{2}}$ % of it may be pictures.
"""
FUNCTIONS = '''%%mcp_prompt
def review(frame_name: str, day: dt.date = dt.date(2026, 1, 1), sizes: list[Size] = [Size.SMALL]):
    """Review a table.

    Args:
        frame_name: The table's name.
        day: The day.
        sizes: Sizes that count.
    """
    frame = globals()[frame_name]
    return [
        f"Review {frame_name} of {day:%Y-%m-%d}: {[size.name for size in sizes]}.",
        frame,
        Message("I see a table.", "assistant"),
        Message(Image(bytes.fromhex(PIXEL))),
        Message(Resource("data:notes", "Some notes.")),
        "What is odd in it?",
    ]

def ask(topic: str, ctx: Context) -> str:
    "Ask the user for a detail."
    ctx.progress(1, 2, "asking")
    return f"{topic}: {ctx.elicit('Which detail?', str, key='detail').data}"

def fails() -> str:
    "Fail."
    raise ValueError("no orders")

def nothing():
    "Nothing."
    return []
'''
COMPLETED = """%%mcp_prompt chart(column: str, size: Size, big: bool) --complete column=df.columns
Draw {column}.
"""
CITIES = """
cities = {"EU": ["Paris", "Prague", "Copenhagen"], "US": [f"Town {n}" for n in range(250)]}
@mcp_prompt(complete={"region": list(cities), "city": lambda known: cities[known["region"]]})
def travel(region: str, city: str) -> str:
    "Travel."
    return f"To {city}"
"""
PIXEL = (
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0"
    "f01f00050001ff8999"
    "3d1d0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    shared_kernel.ok(SETUP)
    shared_kernel.ok(f"PIXEL = {PIXEL!r}")
    shared_kernel.ok(REPORT)
    shared_kernel.ok(FUNCTIONS)
    shared_kernel.ok(COMPLETED)
    shared_kernel.ok(CITIES)
    shared_kernel.ok(
        "%%mcp_tool\ndef total() -> int:\n    'Sum.'\n    return int(orders.revenue.sum())"
    )
    return shared_kernel


@pytest.fixture(params=ERAS)
async def client(request, kernel):
    async with connected(kernel.home, request.param, "stdio") as client:
        yield client


async def list_prompts(client):
    listed = await client.list_prompts(cache_mode="bypass")
    return {prompt.name: prompt for prompt in listed.prompts}


async def test_prompts_are_listed_apart_from_tools(client):
    prompts = await list_prompts(client)
    assert [*prompts] == [
        "weekly_report",
        "review",
        "ask",
        "fails",
        "nothing",
        "chart",
        "travel",
    ]
    assert [tool.name for tool in (await client.list_tools()).tools if tool.name in prompts] == []
    report, review = prompts["weekly_report"], prompts["review"]
    assert (report.title, report.description) == ("Report", "Weekly report")
    assert [(item.name, item.required, item.description) for item in report.arguments] == [
        ("year", True, "(whole number)"),
        ("region", False, "('EU' or 'US')"),
    ]
    assert [item.name for item in review.arguments] == ["frame_name", "day", "sizes"]
    assert review.arguments[0].description == "The table's name."


async def test_markdown_is_filled_with_the_arguments(client):
    result = await client.get_prompt("weekly_report", {"year": "2026"})
    [message] = result.messages
    assert message.role == "user"
    assert message.content.text == (
        "# Weekly report\n\nWrite a report on **2026** for EU. Give figures as JSON, like "
        '`{"sum": 1}`.\n\n$\\frac{1}{2}$ % of it may be pictures.'
    )


async def test_a_function_returns_messages_with_roles_tables_pictures_and_documents(client):
    arguments = {"frame_name": "orders", "day": "2026-02-03", "sizes": '["large", "small"]'}
    messages = (await client.get_prompt("review", arguments)).messages
    roles = [(message.role, message.content.type) for message in messages]
    assert roles == [
        ("user", "text"),
        ("assistant", "text"),
        ("user", "image"),
        ("user", "resource"),
        ("user", "text"),
    ]
    first = messages[0].content.text
    assert first.startswith("Review orders of 2026-02-03: ['LARGE', 'SMALL'].")
    assert "| US" in first or "US,4" in first
    assert messages[3].content.resource.text == "Some notes."


@pytest.mark.parametrize(
    ("name", "arguments", "code", "words"),
    [
        (
            "weekly_report",
            {},
            -32602,
            "The prompt 'weekly_report' was not filled in. year: missing",
        ),
        ("weekly_report", {"year": ""}, -32602, "year: missing"),
        ("weekly_report", {"year": "soon"}, -32602, "year: got"),
        ("weekly_report", {"year": "1", "region": "Mars"}, -32602, "region: got"),
        ("weekly_report", {"year": "1", "month": "2"}, -32602, "month: no such parameter"),
        ("weekly_reports", {}, -32602, "Did you mean 'weekly_report'?"),
        ("total", {}, -32602, "'total' is a tool, not a prompt"),
        ("fails", {}, -32603, "no orders"),
        ("nothing", {}, -32603, "The prompt 'nothing' is empty: its function returned nothing."),
        ("", {}, -32602, "Unknown prompt: ''. The prompts are: "),
        ("x" * 3_000, {}, -32602, "xxx...'. The prompts are: "),
    ],
)
async def test_a_failure_is_a_protocol_error_with_a_sentence(client, name, arguments, code, words):
    with pytest.raises(MCPError) as caught:
        await client.get_prompt(name, arguments)
    assert caught.value.error.code == code
    assert words in caught.value.error.message


@pytest.mark.parametrize("era", ERAS)
async def test_a_prompt_can_ask_the_user(kernel, era):
    seen = []

    async def answer(_context, params):
        seen.append(params.message)
        return ElicitResult(action="accept", content={"value": "prices"})

    async with connected(kernel.home, era, "stdio", elicitation_callback=answer) as client:
        result = await client.get_prompt("ask", {"topic": "EU"})
    assert seen == ["Which detail?"]
    assert result.messages[0].content.text == "EU: prices"


@pytest.mark.parametrize("era", ERAS)
async def test_clients_hear_of_the_kind_that_changed_only(kernel, era):
    heard, prompts = [], Changes()

    async def handle(message):
        heard.append(type(message).__name__)
        if heard[-1] == "PromptListChangedNotification":
            prompts.seen.set()

    async with (
        connected(kernel.home, era, "stdio", message_handler=handle) as client,
        prompts.watch(client, era, prompts_list_changed=True),
    ):
        kernel.ok("%%mcp_prompt later(year: int)\nOn {year}.")
        await until_listed_as_prompt(client, "later")
        await prompts.wait()
        kernel.ok("del later")
        with anyio.fail_after(TIMEOUT):
            while "later" in await list_prompts(client):
                await prompts.wait()
    assert "ToolListChangedNotification" not in heard  # nor when it started


async def until_listed_as_prompt(client, name):
    with anyio.fail_after(TIMEOUT):
        while name not in await list_prompts(client):
            pass


async def test_a_prompt_takes_the_place_of_a_tool_of_its_name(client, kernel):
    kernel.ok("%%mcp_tool\ndef both(x: int) -> int:\n    'Once.'\n    return x")
    await until_listed(client, "both")
    said = kernel.ok("%%mcp_prompt both(x: int)\nNow {x}.").text
    assert "replaces the tool of that name" in said
    await until_listed_as_prompt(client, "both")
    assert (await client.get_prompt("both", {"x": "1"})).messages[0].content.text == "Now 1."
    assert "both" not in {tool.name for tool in (await client.list_tools()).tools}
    kernel.ok("__import__('mcp_notebook').registry.remove('both')")


async def completed(client, prompt, argument, value, known=None):
    reference = PromptReference(name=prompt)
    result = await client.complete(reference, {"name": argument, "value": value}, known)
    return result.completion


@pytest.mark.parametrize(
    ("prompt", "argument", "value", "expected"),
    [
        ("weekly_report", "region", "", ["EU", "US"]),
        ("weekly_report", "region", "u", ["US", "EU"]),
        ("weekly_report", "year", "", []),
        ("weekly_report", "no_such_argument", "", []),
        ("chart", "size", "L", ["large", "small"]),
        ("chart", "big", "f", ["false"]),
        ("chart", "column", "__class__", []),
        ("review", "sizes", "sm", ["small"]),
    ],
)
async def test_an_argument_is_completed_from_its_type(client, prompt, argument, value, expected):
    assert (await completed(client, prompt, argument, value)).values == expected


async def test_live_names_complete_an_argument_also_while_a_cell_runs(client, kernel):
    assert (await completed(client, "chart", "column", "re")).values == ["region", "revenue"]
    kernel.ok("orders['returns'] = 0")
    assert (await completed(client, "chart", "column", "RET")).values == ["returns"]
    kernel.ok("del orders['returns']")


async def test_a_function_gets_the_arguments_that_are_known(client):
    found = await completed(client, "travel", "city", "p", {"region": "EU"})
    assert found.values == ["Paris", "Prague", "Copenhagen"]
    found = await completed(client, "travel", "city", "town", {"region": "US"})
    assert (len(found.values), found.total, found.has_more) == (100, 250, True)
    assert (await completed(client, "travel", "city", "")).values == []  # the function fails
