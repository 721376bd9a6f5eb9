"""Gets prompts with Semantic Kernel's plugin, and prints what it is told."""

import asyncio
import json
import os

from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin


async def main() -> None:
    """Run it to its end."""
    said = {}
    async with MCPStreamableHttpPlugin(
        "notebook",
        os.environ["NOTEBOOK_URL"],
        headers={"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
    ) as plugin:
        functions = Kernel().add_plugin(plugin).functions
        said["prompts"] = {
            name: [parameter.name for parameter in functions[name].parameters]
            for name in ("report", "look")
        }
        for name, arguments in (("report", {"year": "2026"}), ("look", {})):
            messages = await plugin.get_prompt(name, **arguments)
            said[name] = [
                getattr(item, "text", item.content_type)
                for message in messages
                for item in message.items
            ]
        try:
            await plugin.get_prompt("report")
        except Exception as error:
            said["refused"] = str(error)
    print(json.dumps(said))


asyncio.run(main())
