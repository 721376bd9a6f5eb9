"""An agent of OpenAI's Agents SDK that is asked one thing, with the notebook's tools."""

import asyncio
import os

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI


async def main() -> None:
    """Run it to its end."""
    set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="any")
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    async with MCPServerStreamableHttp(
        {"url": os.environ["NOTEBOOK_URL"], "headers": headers}
    ) as server:
        model = OpenAIResponsesModel("stand-in", client)
        agent = Agent("a", model=model, mcp_servers=[server])
        # Else the agent ends if the model calls a tool that left the list in the turn before.
        config = RunConfig(tool_not_found_behavior="return_error_to_model")
        run = Runner.run_streamed(agent, "Go", max_turns=1000, run_config=config)
        async for _ in run.stream_events():
            pass


asyncio.run(main())
