"""Gets prompts and resources with Pydantic AI's client, and prints what it is told."""

import asyncio
import json
import os

from pydantic_ai import TextContent
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    """Run it to its end."""
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    said = {}
    async with MCPToolset(os.environ["NOTEBOOK_URL"], headers=headers) as server:
        said["prompts"] = {
            prompt.name: [argument.name for argument in prompt.arguments or ()]
            for prompt in await server.list_prompts()
        }
        for name, arguments in (("report", {"year": "2026"}), ("look", {})):
            said[name] = [
                message.content.content
                if isinstance(message.content, TextContent)
                else message.content.media_type.partition("/")[0]
                for message in (await server.get_prompt(name, arguments)).messages
            ]
        try:
            await server.get_prompt("report", {})
        except Exception as error:
            said["refused"] = str(error)
        said["resources"] = [resource.uri for resource in await server.list_resources()]
        templates = await server.list_resource_templates()
        said["templates"] = [template.uri_template for template in templates]
        for uri in ("data://orders", "frame://orders"):
            said[uri] = await server.read_resource(uri)
    print(json.dumps(said))


asyncio.run(main())
