"""The texts that FastMCP makes of the results of the pool, as JSON: ``python fastmcp_results.py``.

Runs with the Python of an environment that has FastMCP and the libraries of the pool.
"""

import asyncio
import json

from fastmcp import Client, FastMCP
from results_pool import NAMES, make_results


async def write_results() -> dict[str, str]:
    """Return the text of each result, as a client gets it."""
    server = FastMCP("results")
    values = make_results()

    def result(name: str):
        return values[name]

    server.tool(result)
    texts = {}
    async with Client(server) as client:
        for name in NAMES & values.keys():
            answer = await client.call_tool_mcp("result", {"name": name})
            texts[name] = "\n\n".join(b.text for b in answer.content if b.type == "text")
    return texts


if __name__ == "__main__":
    print(json.dumps(asyncio.run(write_results())))
