"""Gets prompts and resources with LlamaIndex' client, and prints what it is told."""

import asyncio
import json
import os
import traceback

from llama_index.tools.mcp import BasicMCPClient


async def main() -> None:
    """Run it to its end."""
    headers = {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"}
    client = BasicMCPClient(os.environ["NOTEBOOK_URL"], headers=headers)
    said = {}
    said["prompts"] = {
        prompt.name: [argument.name for argument in prompt.arguments]
        for prompt in (await client.list_prompts()).prompts
    }
    for name, arguments in (("report", {"year": "2026"}), ("look", {})):
        messages = await client.get_prompt(name, arguments)
        said[name] = [
            getattr(block, "text", block.block_type)
            for message in messages
            for block in message.blocks
        ]
    try:
        await client.get_prompt("report", {})
    except Exception as error:
        said["refused"] = "".join(traceback.format_exception(error))
    said["resources"] = [str(each.uri) for each in (await client.list_resources()).resources]
    templates = (await client.list_resource_templates()).resource_templates
    said["templates"] = [template.uri_template for template in templates]
    for uri in ("data://orders", "frame://orders"):
        said[uri] = (await client.read_resource(uri)).contents[0].text
    print(json.dumps(said))


asyncio.run(main())
