"""Gets prompts and resources with LangChain's adapters, and prints what it is told."""

import asyncio
import json
import os
import traceback

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    """Run it to its end."""
    server = {
        "transport": "streamable_http",
        "url": os.environ["NOTEBOOK_URL"],
        "headers": {"Authorization": f"Bearer {os.environ['NOTEBOOK_TOKEN']}"},
    }
    client = MultiServerMCPClient({"notebook": server})
    said = {}
    for name, arguments in (("report", {"year": "2026"}), ("look", {})):
        try:
            messages = await client.get_prompt("notebook", name, arguments=arguments)
            said[name] = [message.content for message in messages]
        except Exception as error:
            said[name] = "".join(traceback.format_exception(error))
    try:
        await client.get_prompt("notebook", "report")
    except Exception as error:
        said["refused"] = "".join(traceback.format_exception(error))
    blobs = await client.get_resources("notebook")
    said["resources"] = [str(blob.metadata["uri"]) for blob in blobs]
    for uri in ("data://orders", "frame://orders"):
        [blob] = await client.get_resources("notebook", uris=uri)
        said[uri] = blob.as_string()
    print(json.dumps(said))


asyncio.run(main())
