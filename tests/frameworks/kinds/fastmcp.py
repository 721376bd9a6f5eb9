"""Gets prompts, resources and skills with FastMCP's client, and prints what it is told."""

import asyncio
import json
import os

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.skills import SkillsClientExtension
from mcp_types import PromptReference, ResourceTemplateReference


async def main() -> None:
    """Run it to its end."""
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    said = {}
    transport = StreamableHttpTransport(os.environ["NOTEBOOK_URL"], headers)
    async with Client(transport, extensions=[SkillsClientExtension()]) as client:
        said["prompts"] = {
            prompt.name: [argument.name for argument in prompt.arguments]
            for prompt in await client.list_prompts()
        }
        for name, arguments in (("report", {"year": "2026"}), ("look", {})):
            result = await client.get_prompt(name, arguments)
            said[name] = [
                getattr(message.content, "text", message.content.type)
                for message in result.messages
            ]
        try:
            await client.get_prompt("report", {})
        except Exception as error:
            said["refused"] = str(error)
        said["resources"] = [str(resource.uri) for resource in await client.list_resources()]
        said["templates"] = [each.uri_template for each in await client.list_resource_templates()]
        for uri in ("data://orders", "frame://orders"):
            said[uri] = (await client.read_resource(uri))[0].text
        completed = [
            await client.complete(PromptReference(name="report"), {"name": "region", "value": "u"}),
            await client.complete(
                ResourceTemplateReference(uri="frame://{name}"), {"name": "name", "value": "or"}
            ),
        ]
        said["completed"] = [completion.values[0] for completion in completed]
        [skill] = await client.list_skills()
        said["skills"] = [skill.uri, (await client.read_resource(skill.uri))[0].text]
    print(json.dumps(said))


asyncio.run(main())
