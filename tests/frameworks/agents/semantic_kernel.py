"""An agent of Semantic Kernel's that is asked one thing, with the notebook's tools."""

import asyncio
import os

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin
from semantic_kernel.functions import KernelArguments


async def main() -> None:
    """Run it to its end."""
    client = AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="any")
    calls = FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=1000)
    settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=calls)
    async with MCPStreamableHttpPlugin(
        "notebook",
        os.environ["NOTEBOOK_URL"],
        headers={"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
        load_prompts=False,
    ) as plugin:
        agent = ChatCompletionAgent(
            service=OpenAIChatCompletion("stand-in", async_client=client),
            plugins=[plugin],
            arguments=KernelArguments(settings=settings),
        )
        await agent.get_response("Go")


asyncio.run(main())
