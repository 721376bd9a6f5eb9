"""An agent of Pydantic AI's that is asked one thing, with the notebook's tools."""

import asyncio
import os

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main() -> None:
    """Run it to its end."""
    provider = OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key="any")
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    server = MCPToolset(os.environ["NOTEBOOK_URL"], headers=headers, max_retries=1000)
    agent = Agent(OpenAIChatModel("stand-in", provider=provider), toolsets=[server])
    await agent.run("Go", usage_limits=UsageLimits(request_limit=None))


asyncio.run(main())
