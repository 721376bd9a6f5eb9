"""Gets prompts and resources with AutoGen's workbench, and prints what it is told."""

import asyncio
import json
import os

from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams


async def main() -> None:
    """Run it to its end."""
    server = StreamableHttpServerParams(
        url=os.environ["NOTEBOOK_URL"],
        headers={"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
    )
    said = {}
    async with McpWorkbench(server) as workbench:
        said["prompts"] = {
            prompt.name: [argument.name for argument in prompt.arguments]
            for prompt in (await workbench.list_prompts()).prompts
        }
        for name, arguments in (("report", {"year": "2026"}), ("look", {})):
            said[name] = [
                getattr(message.content, "text", message.content.type)
                for message in (await workbench.get_prompt(name, arguments)).messages
            ]
        try:
            await workbench.get_prompt("report", {})
        except Exception as error:
            said["refused"] = str(error)
        said["resources"] = [str(each.uri) for each in (await workbench.list_resources()).resources]
        templates = (await workbench.list_resource_templates()).resourceTemplates
        said["templates"] = [template.uriTemplate for template in templates]
        for uri in ("data://orders", "frame://orders"):
            said[uri] = (await workbench.read_resource(uri)).contents[0].text
    print(json.dumps(said))


asyncio.run(main())
