"""Gets prompts and resources with OpenAI's Agents SDK, and prints what it is told."""

import asyncio
import json
import os

from agents.mcp import MCPServerStreamableHttp


async def main() -> None:
    """Run it to its end."""
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    said = {}
    async with MCPServerStreamableHttp(
        {"url": os.environ["NOTEBOOK_URL"], "headers": headers}
    ) as server:
        said["prompts"] = {
            prompt.name: [argument.name for argument in prompt.arguments]
            for prompt in (await server.list_prompts()).prompts
        }
        for name, arguments in (("report", {"year": "2026"}), ("look", {})):
            said[name] = [
                getattr(message.content, "text", message.content.type)
                for message in (await server.get_prompt(name, arguments)).messages
            ]
        try:
            await server.get_prompt("report", {})
        except Exception as error:
            said["refused"] = str(error)
        said["resources"] = [str(each.uri) for each in (await server.list_resources()).resources]
        templates = (await server.list_resource_templates()).resource_templates
        said["templates"] = [template.uri_template for template in templates]
        for uri in ("data://orders", "frame://orders"):
            said[uri] = (await server.read_resource(uri)).contents[0].text
    print(json.dumps(said))


asyncio.run(main())
