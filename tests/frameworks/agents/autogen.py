"""An agent of AutoGen's that is asked one thing, with the notebook's tools."""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams


async def main() -> None:
    """Run it to its end."""
    model = OpenAIChatCompletionClient(
        model="stand-in",
        base_url=os.environ["MODEL_URL"],
        api_key="any",
        model_info={
            "vision": True,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        },
    )
    server = StreamableHttpServerParams(
        url=os.environ["NOTEBOOK_URL"],
        headers={"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
    )
    async with McpWorkbench(server) as workbench:
        agent = AssistantAgent("a", model, workbench=workbench, max_tool_iterations=1000)
        await agent.run(task="Go")


asyncio.run(main())
