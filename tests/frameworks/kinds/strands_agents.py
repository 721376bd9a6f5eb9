"""Gets prompts and resources with Strands' client, and prints what it is told."""

import json
import os

from strands.tools.mcp import MCPClient

said = {}
with MCPClient(
    url=os.environ["NOTEBOOK_URL"],
    headers={"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
) as server:
    said["prompts"] = {
        prompt.name: [argument.name for argument in prompt.arguments]
        for prompt in server.list_prompts_sync().prompts
    }
    for name, given in (("report", {"year": "2026"}), ("look", {})):
        said[name] = [
            getattr(message.content, "text", message.content.type)
            for message in server.get_prompt_sync(name, given).messages
        ]
    try:
        server.get_prompt_sync("report", {})
    except Exception as error:
        said["refused"] = str(error)
    said["resources"] = [str(each.uri) for each in server.list_resources_sync().resources]
    templates = server.list_resource_templates_sync().resource_templates
    said["templates"] = [template.uri_template for template in templates]
    for uri in ("data://orders", "frame://orders"):
        said[uri] = server.read_resource_sync(uri).contents[0].text
print(json.dumps(said))
