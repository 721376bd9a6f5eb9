"""An agent of LangChain's that is asked one thing, with the notebook's tools."""

import asyncio
import os

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main() -> None:
    """Run it to its end."""
    model = ChatOpenAI(model="stand-in", base_url=os.environ["MODEL_URL"], api_key="any")
    server = {
        "transport": "streamable_http",
        "url": os.environ["NOTEBOOK_URL"],
        "headers": {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
    }
    tools = await MultiServerMCPClient({"notebook": server}).get_tools()
    question = {"messages": [{"role": "user", "content": "Go"}]}
    await create_agent(model, tools).ainvoke(question, {"recursion_limit": 1000})


asyncio.run(main())
