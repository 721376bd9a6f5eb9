"""What Notebook Intelligence does in its agent mode, without a model: lists and calls a tool."""

import asyncio
import json
import sys
import time

from notebook_intelligence.config import NBIConfig
from notebook_intelligence.mcp_config_validation import validate_mcp_config
from notebook_intelligence.mcp_manager import MCPManager

settings = NBIConfig().user_mcp
validate_mcp_config(settings)
manager = MCPManager(settings)
server = manager.get_mcp_server("notebook")
limit = time.monotonic() + float(sys.argv[1])
while not server.get_tools():
    assert time.monotonic() < limit, server.status
    time.sleep(0.1)
names = [tool.name for tool in server.get_tools()]
answer = asyncio.run(server.get_tool("double").handle_tool_call(None, None, {}, {"n": 4}))
sys.stdout.write(json.dumps([names, answer]))
manager.handle_stop_request()
