"""What Jupyter AI does for an agent in a chat, without a model: it reads its settings for it.

Its client starts the server as the agent (Claude Code and others, over the Agent Client Protocol)
would: with the official client.
"""

import asyncio
import json
import logging
import sys
from types import SimpleNamespace

from jupyter_ai_persona_manager.persona_manager import PersonaManager
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

ROOT, CHAT_FOLDER = sys.argv[1:]


async def main() -> None:
    manager = SimpleNamespace(
        get_dotjupyter_dir=lambda: PersonaManager.get_dotjupyter_dir(manager),
        get_chat_dir=lambda: CHAT_FOLDER,
        root_dir=ROOT,
        builtin_mcp_servers=[],
        log=logging.getLogger(),
    )
    (server,) = PersonaManager.get_mcp_settings(manager).mcp_servers
    env = {each.name: each.value for each in server.env}
    command = StdioServerParameters(command=server.command, args=server.args, env=env)
    async with stdio_client(command) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool("double", {"n": 4})
    sys.stdout.write(json.dumps([tools, result.content[0].text]))


asyncio.run(main())
