"""Somebody is asked before a call, by the official client, over every transport."""

import mcp_types as types
import pytest
from clients import LOAD, ONE_WAY, connected, text_of
from listing import list_tools
from live import kernel_with
from notebook_files import write_notebook

pytestmark = pytest.mark.anyio

CELLS = [
    '%%mcp_tool --confirm --read-only\ndef peek() -> str:\n    "Peek."\n    return "ok"',
    '%%mcp_tool\ndef overwrite() -> str:\n    "Overwrite."\n    return "gone"',
    '%%mcp_tool --read-only\ndef look() -> str:\n    "Look."\n    return "seen"',
]


kernel = kernel_with(*CELLS)


@pytest.mark.smoke
@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_the_user_is_asked_about_what_may_destroy_and_what_its_author_marked(
    kernel, era, transport
):
    asked = []

    async def answer(_context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": answers.pop()})

    answers = ["Deny", "Deny", "Allow once"]
    async with connected(
        kernel.home, era, transport, "--confirm-destructive", elicitation_callback=answer
    ) as client:
        listed = {tool.name: tool for tool in await list_tools(client)}
        assert listed["peek"].meta["io.github.mcp-notebook/confirm"] is True
        assert text_of(await client.call_tool("peek", {})) == "ok"
        assert "did not allow it" in text_of(await client.call_tool("peek", {}))
        assert (await client.call_tool("overwrite", {})).is_error
        assert text_of(await client.call_tool("look", {})) == "seen"
    assert len(asked) == 3
    assert "\nTool: peek\n" in asked[0]
    caller = "stdio" if transport == "stdio" else "owner"
    assert f'\nAsked by: {caller}, with the program "claude-code ' in asked[0]


@pytest.mark.slow
async def test_a_notebook_without_a_frontend_asks_the_client_or_nobody(home):
    path = home / "careful.ipynb"
    write_notebook(path, LOAD, CELLS[0])
    async with connected(home, "legacy", "stdio", str(path)) as client:
        result = await client.call_tool("peek", {})
    assert result.is_error
    assert "and the notebook 'careful' runs without a frontend" in text_of(result)
