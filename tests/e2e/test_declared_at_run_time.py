"""Tools from data at run time, and results given again, as clients of both eras see them."""

import json
from contextlib import AsyncExitStack

import anyio
import pytest
from clients import ONE_ERA, connected, text_of, tool_kernel, until_listed
from listing import list_tools
from mcp_types import Implementation

pytestmark = pytest.mark.anyio

ANY_CLIENT = Implementation(name="any", version="1")
CACHE = "io.github.mcp-notebook/cache"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string", "pattern": "^([0-9]+)+$"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SETUP = f"""
import json
from mcp_notebook import Context, Tool, mcp_tool, registry
schema = json.loads({json.dumps(SCHEMA)!r})
async def greet(ctx: Context, **arguments):
    return {{"tool": ctx.tool, **arguments}}
def add_one(name: str) -> str:
    "Add a tool from a thread."
    registry.add(Tool(name=name, handler=lambda: "new"))
    return ", ".join(registry)
def remove_one(name: str) -> str:
    "Remove a tool."
    registry.remove(name)
    return ", ".join(registry)
def redefine(name: str, answer: str) -> str:
    "Run a cell that declares a tool."
    head = f"@mcp_tool(title={{answer!r}})"
    get_ipython().run_cell(f"{{head}}\\ndef {{name}}() -> str:\\n    return {{answer!r}}")
    return "redefined"
def read(key: str = "a") -> str:
    "Read."
    return key
registry.add(
    Tool(name="greet", description="Greet.", title="Greeter", input_schema=schema, handler=greet),
    Tool(name="add_one", handler=add_one, run="thread"),
    Tool(name="remove_one", handler=remove_one),
    Tool(name="redefine", handler=redefine),
    Tool(name="read", handler=read, read_only=True, cache="5min"),
    Tool(name="fresh", handler=lambda: "fresh", cache="ephemeral"),
)
schema["properties"].clear()
"""


class Notices:
    """Counts notices of changes, in whichever way the era sends them."""

    def __init__(self, era):
        self.era = era
        self.number = 0
        self.more = anyio.Event()

    def count(self):
        self.number += 1
        self.more.set()
        self.more = anyio.Event()

    async def handle(self, message):
        # In the newer era it comes by the subscription, and here once more.
        if self.era == "legacy" and type(message).__name__ == "ToolListChangedNotification":
            self.count()

    async def reach(self, number):
        with anyio.fail_after(60):
            while self.number < number:
                await self.more.wait()


@pytest.fixture(scope="module", params=ONE_ERA)
def era(request):
    return request.param


@pytest.fixture(scope="module")
def kernel(module_home):
    with tool_kernel(module_home) as kernel:
        yield kernel


@pytest.fixture
async def notices(era):
    return Notices(era)


@pytest.fixture
async def early_client(kernel, era, notices):
    # The kernel has no tool yet: the bridge's finding it is no change. Answers wait for no list.
    own = {"client_info": ANY_CLIENT, "message_handler": notices.handle}
    async with connected(kernel.home, era, "stdio", **own) as client:
        yield client
    await anyio.to_thread.run_sync(kernel.ok, "registry.remove(*registry)")


@pytest.fixture
async def client(kernel, early_client):
    await cell(kernel, SETUP)
    await until_listed(early_client, "fresh")
    return early_client


async def cell(kernel, code):
    return (await anyio.to_thread.run_sync(kernel.ok, code)).stdout


async def listed(client):
    return {tool.name: tool for tool in await list_tools(client)}


async def test_a_tool_by_a_raw_schema_from_its_declaration_to_its_removal(kernel, client):
    tool = (await listed(client))["greet"]
    assert tool.input_schema == SCHEMA
    assert (tool.title, tool.description, tool.meta) == ("Greeter", "Greet.", None)

    good = await client.call_tool("greet", {"email": "a@b", "name": "Ann"})
    assert json.loads(text_of(good)) == {"tool": "greet", "email": "a@b", "name": "Ann"}
    evil = {"contactMethod": "phone", "phone": "1" * 60 + "x", "nmae": "Ann"}
    refused = await client.call_tool("greet", evil)
    assert refused.is_error
    assert "phone: got '111" in text_of(refused)
    assert "nmae: no such parameter; did you mean 'name'?" in text_of(refused)

    shown = await cell(
        kernel,
        "%mcp call greet email=a\n"
        "print(repr(registry), 'greet' in registry, registry['greet'].title)",
    )
    assert '"email":"a"' in shown
    assert "greet, add_one, remove_one, redefine, read, fresh> True Greeter" in shown
    table = (await anyio.to_thread.run_sync(kernel.ok, "%mcp list")).text
    assert "greet(name=..., address=..., contactMethod=..., phone=..., email=...)" in table

    await cell(kernel, "registry.update('greet', name='hello', description='Say hello.')")
    tools = await until_listed(client, "hello")
    assert list(tools) == ["hello", "add_one", "remove_one", "redefine", "read", "fresh"]
    assert tools["hello"].description == "Say hello."
    assert json.loads(text_of(await client.call_tool("hello", {"email": "a"})))["tool"] == "hello"

    added = await client.call_tool("add_one", {"name": "late"})
    assert text_of(added) == "hello, add_one, remove_one, redefine, read, fresh, late"
    await until_listed(client, "late")
    assert text_of(await client.call_tool("late", {})) == "new"
    await cell(kernel, "registry.remove('late')")


async def test_a_change_that_a_call_makes_is_there_when_it_is_answered(client, notices):
    for number in range(10):
        name = f"made_{number}"
        before = notices.number
        assert name in text_of(await client.call_tool("add_one", {"name": name}))
        assert text_of(await client.call_tool(name, {})) == "new"
        await client.call_tool("remove_one", {"name": name})
        assert name not in await listed(client)
        for answer in ("first", "second"):
            await client.call_tool("redefine", {"name": name, "answer": answer})
            assert (await listed(client))[name].title == answer
            assert text_of(await client.call_tool(name, {})) == answer
        if notices.era == "legacy":
            assert notices.number > before


async def test_a_batch_of_changes_is_one_notice(kernel, early_client, era, notices):
    added = """
anything = {"type": "object"}
registry.add(*[Tool(name=f"t{n}", input_schema=anything, handler=print) for n in range(50)])
"""
    changed = """
with registry.batch():
    for number in range(50):
        registry.update(f"t{number}", description="Changed.")
    for number in range(1, 50):
        registry.remove(f"t{number}")
"""

    async def follow(subscription):
        async for _ in subscription:
            notices.count()

    client = early_client
    async with AsyncExitStack() as stack:
        if era != "legacy":
            subscription = await stack.enter_async_context(client.listen(tools_list_changed=True))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            tasks.start_soon(follow, subscription)
        await cell(kernel, SETUP)
        await notices.reach(1)
        await cell(kernel, added)
        await notices.reach(2)
        assert "t49" in await listed(client)
        await cell(kernel, changed)
        await notices.reach(3)
        tools = await listed(client)
        assert tools["t0"].description == "Changed."
        assert "t1" not in tools
        await cell(kernel, "registry.remove('t0')")
        await notices.reach(4)
        assert "t0" not in await listed(client)
        assert notices.number == 4


async def test_clients_are_told_how_long_they_may_reuse_results(client):
    tools = await listed(client)
    assert tools["read"].meta == {CACHE: 300.0}
    assert tools["fresh"].meta == {CACHE: "ephemeral"}
