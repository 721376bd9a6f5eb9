"""An agent of LlamaIndex's that is asked one thing, with the notebook's tools."""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main() -> None:
    """Run it to its end."""
    model = OpenAILike(
        "stand-in",
        api_base=os.environ["MODEL_URL"],
        api_key="any",
        is_chat_model=True,
        is_function_calling_model=True,
    )
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    client = BasicMCPClient(os.environ["NOTEBOOK_URL"], headers=headers)
    tools = await McpToolSpec(client).to_tool_list_async()
    await FunctionAgent(tools=tools, llm=model).run("Go", max_iterations=1000)


asyncio.run(main())
