"""How jupyter-mcp-server has code executed in a kernel: ``python jupyter_way.py _ stdio``.

Its own function, on a manager of kernels of Jupyter Server's: an `execute_request` through a client
of jupyter_client's that is made for each call. Neither its server nor MCP is in the way: a line
in is a call of `add`, a line out its result.
"""

import asyncio
import json
import sys
from types import SimpleNamespace

from jupyter_mcp_server.utils import execute_code_local
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager


async def answer(server: SimpleNamespace, kernel: str, line: bytes) -> None:
    """Execute a call and print what came of it."""
    request = json.loads(line)
    given = request["params"]["arguments"]
    outputs = await execute_code_local(server, "", f"add({given['a']}, {given['b']})", kernel)
    content = [{"type": "text", "text": str(output)} for output in outputs]
    result = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}}
    sys.stdout.write(json.dumps(result, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def main() -> None:
    """Start a kernel, and answer until stdin ends."""
    kernels = AsyncMappingKernelManager()
    kernel = await kernels.start_kernel()
    server = SimpleNamespace(kernel_manager=kernels)
    await execute_code_local(server, "", "def add(a, b): return a + b", kernel)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        async with asyncio.TaskGroup() as calls:
            while line := await reader.readline():
                calls.create_task(answer(server, kernel, line))
    finally:
        await kernels.shutdown_all(now=True)


asyncio.run(main())
