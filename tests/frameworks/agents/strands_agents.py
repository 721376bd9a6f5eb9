"""An agent of Strands' that is asked one thing, with the notebook's tools."""

import os

from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

model = OpenAIModel(
    client_args={"base_url": os.environ["MODEL_URL"], "api_key": "any"}, model_id="stand-in"
)
with MCPClient(
    url=os.environ["NOTEBOOK_URL"],
    headers={"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
) as server:
    Agent(model, tools=server.list_tools_sync(), callback_handler=None)("Go")
