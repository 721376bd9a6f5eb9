"""What clients that are known by their names get otherwise than all others."""

import re

import anyio
import pytest
from linked_servers import linked_client
from live import kernel_with
from mcp_types import ImageContent, Implementation, ResourceLink, TextContent

from mcp_notebook.bridge.server.forms.accommodations import ACCOMMODATIONS

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
from pydantic import BaseModel

class Extremes(BaseModel):
    low: int
    high: int

def extremes() -> Extremes:
    "Shows a picture, and returns data."
    import PIL.Image
    display(PIL.Image.new("RGB", (2, 2)))
    return Extremes(low=1, high=2)

def report():
    "Returns a picture and a long table, of which only a part is shown."
    import pandas as pd, PIL.Image
    return [PIL.Image.new("RGB", (2, 2)), pd.DataFrame({"day": range(100)})]

def declare(names: list[str]) -> str:
    "Declares other tools."
    from mcp_notebook import Tool, registry
    registry.add(*(Tool(name=name, handler=lambda: name) for name in names))
    return "declared"
"""
PROMPT = """%%mcp_prompt
import PIL.Image
from mcp_notebook import Message, Resource, ResourceLink

def odd() -> list:
    "A prompt of several messages."
    return [
        "Look:",
        PIL.Image.new("RGB", (2, 2)),
        Message(ResourceLink("https://example.com/a.csv", name="a.csv"), "assistant"),
        Resource("data:notes", "Some notes."),
        Resource("data:bytes", b"12", "application/zip"),
        "What is odd?",
    ]
"""
CODEX = "codex-mcp-client"


notebook = kernel_with(TOOLS)


@pytest.fixture
def tools(notebook):
    """The notebook, without what a test before has declared."""
    notebook.ok("%mcp_tool extremes report declare\nfrom mcp_notebook import registry")
    notebook.ok("registry.remove(*set(registry) - {'extremes', 'report', 'declare', 'mixed'})")
    return notebook


def asked(kernel, name, era="legacy", **options):
    """Yield a client that calls itself so."""
    info = Implementation(name=name, version="0.169.0")
    return linked_client(kernel, era, info, **options)


@pytest.mark.needs("pyarrow")  # for table.parquet
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("claude-code", [ImageContent, TextContent, ResourceLink, ResourceLink]),
        ("any-client", [ImageContent, TextContent]),
        ("opencode", [ImageContent, TextContent, TextContent]),
        ("copilot-cli", [ImageContent, TextContent, TextContent]),
        ("continue-cli-client", [TextContent, TextContent, ResourceLink, ResourceLink]),
    ],
)
async def test_what_a_client_would_drop_or_show_as_base64_becomes_text(tools, name, kinds):
    async with asked(tools, name) as client:
        content = (await client.call_tool("report")).content
        assert [type(block) for block in content] == kinds
        if name == "continue-cli-client":
            assert re.fullmatch(
                r"\[A picture, image/png, \d+ bytes: this client cannot show it to its model\. "
                r"Ask for its content as text or numbers\.\]",
                content[0].text,
            )
        elif name != "claude-code":
            (uri,) = re.findall(
                r'read_notebook_resource\(uri="(notebook:\S+/\S+\.csv)"\), also as '
                r"table.parquet there\]$",
                content[-1].text,
            )
            read = await client.read_resource(uri)
            assert "\n99" in read.contents[0].text
            page = await client.call_tool("read_notebook_resource", {"uri": uri, "first_line": 60})
            assert "\n99" in page.content[0].text


@pytest.mark.parametrize(
    ("name", "says", "kinds"),
    [
        ("any-client", "plot", [ImageContent, TextContent]),
        ("any-client", "table", [TextContent]),
        ("any-client", "captions", [TextContent, ImageContent, TextContent, ImageContent]),
        ("any-client", "plots", [ImageContent, TextContent, ImageContent]),
        ("any-client", "audiences", [TextContent, TextContent]),
        ("claude-code", "plot", [TextContent, ImageContent]),
        ("claude-code", "table", [TextContent, TextContent]),
    ],
)
async def test_who_reads_the_first_block_only_reads_what_the_call_is_for(tools, name, says, kinds):
    tools.ok(MIXED)
    async with asked(tools, name) as client:
        result = await client.call_tool("mixed", {"kind": says})
    assert [type(block) for block in result.content] == kinds
    said = "\n\n".join(block.text for block in result.content if isinstance(block, TextContent))
    assert said == SAID[says]


MIXED = """%%mcp_tool
import PIL.Image
from mcp_notebook import Text

def picture(number):
    return PIL.Image.new("RGB", (number, 2))

def mixed(kind: str):
    "Prints, and shows."
    if kind in ("plot", "plots", "table"):
        print("loading")
    if kind == "captions":
        return ["first:", picture(1), "second:", picture(2)]
    if kind == "audiences":
        return [Text("a", audience="user"), Text("b")]
    return {"plot": picture(1), "plots": [picture(1), picture(2)], "table": "value"}[kind]
"""
SAID = {
    "plot": "loading",
    "plots": "loading",
    "table": "loading\n\nvalue",
    "captions": "first:\n\nsecond:",
    "audiences": "a\n\nb",
}


@pytest.mark.parametrize(
    ("meta", "step"),
    [(False, "start the server with `--meta-tools`"), (True, "`call_notebook_tool`")],
)
async def test_who_lists_only_once_is_told_of_new_tools_once_and_how_to_reach_them(
    tools, meta, step
):
    async with asked(tools, CODEX, meta_tools=meta) as client:

        async def declare(*names):
            result = await client.call_tool("declare", {"names": names})
            text, *notes = [block.text for block in result.content]
            assert text == "declared"
            return notes

        await client.list_tools()
        assert await declare() == []
        (note,) = await declare("late", "later")
        assert note.startswith("[New tools since this client listed them: `late`, `later`. ")
        assert step in note
        assert await declare("late") == []
        (note,) = await declare(*(f"n{number}" for number in range(20)))
        assert "`n9` and 10 more. " in note


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_an_answer_waits_until_a_client_that_lists_late_has_listed_what_the_call_declared(
    tools, era
):
    async with asked(tools, "any-client", era) as client:
        await client.list_tools()
        await client.call_tool("declare", {"names": ["early"]})  # it may list whenever it likes
    async with asked(tools, "claude-code", era) as client, anyio.create_task_group() as tasks:
        answered = anyio.Event()

        async def declare():
            await client.call_tool("declare", {"names": ["late"]})
            answered.set()

        async def list_names():
            return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]

        assert "early" in await list_names()
        tasks.start_soon(declare)
        while "late" not in await list_names():
            assert not answered.is_set()
        await answered.wait()


def test_each_says_in_which_version_it_was_seen_and_when():
    for accommodation in ACCOMMODATIONS.values():
        assert any(part.isdigit() for part in accommodation.evidence)


@pytest.fixture
def prompts(notebook):
    notebook.ok(PROMPT)
    return notebook


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_messages_of_a_prompt_keep_their_order_and_roles(prompts, era):
    async with asked(prompts, "any-client", era) as client:
        messages = (await client.get_prompt("odd", {})).messages
    seen = [(message.role, message.content.type) for message in messages]
    assert seen == [
        ("user", "text"),
        ("user", "image"),
        ("assistant", "text"),  # a link is text to who is not known to take links
        ("user", "resource"),
        ("user", "resource"),
        ("user", "text"),
    ]


@pytest.mark.parametrize("name", ["gemini-cli-mcp-client", "qwen-cli-mcp-client-notebook"])
async def test_who_takes_the_first_message_of_a_prompt_gets_all_of_it_in_one_text(prompts, name):
    async with asked(prompts, name) as client:
        [message] = (await client.get_prompt("odd", {})).messages
    first, picture, link, notes, archive, last = message.content.text.split("\n\n")
    assert (message.role, first, last) == ("user", "Look:", "What is odd?")
    assert picture.startswith("[A picture, image/png")
    assert link.startswith("Assistant: [a.csv")
    assert notes == "Some notes."
    assert archive == "[A file, application/zip, 2 bytes: data:bytes]"


async def test_a_prompt_brings_no_news_of_tools(prompts):
    async with asked(prompts, CODEX) as client:
        await client.list_tools()
        await client.call_tool("declare", {"names": ["late"]})
        before = (await client.get_prompt("odd", {})).messages
        await client.call_tool("declare", {"names": ["later"]})
        assert len((await client.get_prompt("odd", {})).messages) == len(before)
