"""Tools that require a capability of the client: no other client's call runs."""

import pytest
from clients import connected, text_of
from live import kernel_with
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from raw_calls import ELICITATION, post_call, post_older_call
from task_client import TasksExtension

from mcp_notebook.text.missing_tools import META_TOOLS

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool --requires elicitation --run thread
from mcp_notebook import Context
ran = []

def choose(ctx: Context) -> str:
    "Ask the user."
    ran.append("choose")
    return ctx.elicit("Which city?", ["Rome", "Oslo"]).data
"""
TASK = """%%mcp_tool --requires elicitation --task
def choose_later(ctx: Context) -> str:
    "Ask the user, as a task."
    ran.append("choose_later")
    return ctx.elicit("Which city?", ["Rome", "Oslo"]).data
"""
CONFIRMED = """%%mcp_tool --requires elicitation --confirm
def buy() -> str:
    "Asks for consent first."
    ran.append("buy")
    return "bought"
"""
OTHERS = """%%mcp_tool --requires sampling --requires roots --requires com.example/maps
def draft() -> str:
    "For clients with a model, folders and maps."
    ran.append("draft")
    return "drafted"
"""
kernel = kernel_with(TOOLS, TASK, CONFIRMED, OTHERS)
LACKING = "it requires the client capability `elicitation`"


@pytest.fixture
def nothing_ran(kernel):
    """Check that no tool has run."""
    kernel.ok("ran.clear()")
    yield
    assert kernel.ok("print(ran)").text.strip() == "[]"


@pytest.mark.parametrize("name", ["choose", "choose_later", "buy"])
@pytest.mark.usefixtures("nothing_ran")
async def test_a_client_that_has_not_declared_it_is_told_what_it_lacks(served, name):
    response = await post_call(served.url, name)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {}}}
    assert LACKING in error["message"]
    only_pages = {"elicitation": {"url": {}}}
    response = await post_call(served.url, name, capabilities=only_pages)
    assert response.json()["error"]["code"] == -32021


@pytest.mark.usefixtures("kernel")
async def test_any_capability_and_any_extension_can_be_required(served):
    response = await post_call(served.url, "draft", capabilities={"sampling": {}})
    assert response.status_code == 400
    lacking = {"roots": {}, "extensions": {"com.example/maps": {}}}
    assert response.json()["error"]["data"] == {"requiredCapabilities": lacking}
    declared = {"sampling": {}, **lacking}
    response = await post_call(served.url, "draft", capabilities=declared)
    assert response.json()["result"]["content"][0]["text"] == "drafted"
    result = await post_older_call(served.url, "draft", capabilities=declared)
    assert result["content"][0]["text"] == "drafted"
    result = await post_older_call(served.url, "draft", capabilities={"sampling": {}})
    assert "the client capability `roots` and `com.example/maps`" in result["content"][0]["text"]


@pytest.mark.usefixtures("nothing_ran")
async def test_the_older_eras_have_no_such_error_and_get_a_result_that_says_so(served):
    result = await post_older_call(served.url, "choose")
    assert result["isError"]
    assert LACKING in result["content"][0]["text"]


@pytest.mark.usefixtures("nothing_ran")
async def test_meta_tools_and_tasks_go_through_the_same_gate(module_home, connect):
    async with connect("auto", "http", extensions=[TasksExtension()]) as client:
        with pytest.raises(MCPError, match="requires the client capability") as raised:
            await client.call_tool("choose_later", {})
        assert raised.value.code == -32021
    async with connected(module_home, "auto", "stdio", "--meta-tools") as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool(META_TOOLS[2], {"name": "choose"})
        assert raised.value.data == {"requiredCapabilities": {"elicitation": {}}}
    async with connected(module_home, "legacy", "stdio", "--meta-tools") as client:
        result = await client.call_tool(META_TOOLS[2], {"name": "choose"})
        assert LACKING in text_of(result)


@pytest.mark.smoke
@pytest.mark.usefixtures("kernel")
async def test_a_client_that_has_declared_it_is_asked(connect, era, transport):
    async def answer(_context, _params):
        return ElicitResult(action="accept", content={"value": "Rome"})

    async with connect(era, transport, elicitation_callback=answer) as client:
        assert text_of(await client.call_tool("choose", {})) == "Rome"


@pytest.mark.usefixtures("kernel")
async def test_a_declared_capability_leads_to_the_question(served):
    response = await post_call(served.url, "choose", capabilities=ELICITATION)
    assert response.status_code == 200
    (asked,) = response.json()["result"]["inputRequests"].values()
    assert asked["method"] == "elicitation/create"
