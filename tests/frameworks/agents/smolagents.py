"""An agent of smolagents' that is asked one thing, with the notebook's tools."""

import os

from smolagents import LogLevel, MCPClient, OpenAIServerModel, ToolCallingAgent

server = {
    "url": os.environ["NOTEBOOK_URL"],
    "transport": "streamable-http",
    "headers": {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
}
model = OpenAIServerModel("stand-in", api_base=os.environ["MODEL_URL"], api_key="any")
with MCPClient(server, structured_output=False) as tools:
    agent = ToolCallingAgent(tools, model, verbosity_level=LogLevel.ERROR)
    agent.run("Go", max_steps=1000)
