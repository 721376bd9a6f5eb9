"""A floor: the kernel of `bare_bridge.py`, which starts it: ``bare_kernel.py SOCKET``.

As in a kernel with our package, a thread has the socket, and the main thread's loop runs the
functions and writes what they return. No IPython, and nothing that is not in the way of a call.
"""

import asyncio
import socket
import struct
import sys
import threading
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json
from same_tools import LARGE, add, length, png
from typing_extensions import TypedDict

HEAD = struct.Struct(">III")
TOOLS = {
    "add": (TypeAdapter(TypedDict("Numbers", {"a": int, "b": int})), add),
    "length": (TypeAdapter(TypedDict("Text", {"text": str})), length),
    "picture_1mb": (TypeAdapter(TypedDict("Nothing", {})), lambda: png(LARGE)),
}
connection = socket.socket(fileno=int(sys.argv[1]))


def run(number: int, request: Any) -> None:
    """Run a function, and send its value; the bridge adds what comes after a picture."""
    parameters, function = TOOLS[request["params"]["name"]]
    value = function(**parameters.validate_python(request["params"]["arguments"]))
    if isinstance(value, bytes):
        result = b'{"content":[{"type":"image","mimeType":"image/png","data":"'
    else:
        text = {"content": [{"type": "text", "text": str(value)}]}
        result, value = to_json(text), b""
    connection.sendall(HEAD.pack(number, len(result), len(value)) + result)
    if value:
        connection.sendall(value)


def read(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Hand requests to the main thread, until the bridge is gone."""
    with connection.makefile("rb") as stream:
        while head := stream.read(HEAD.size):
            number, size, _ = HEAD.unpack(head)
            loop.call_soon_threadsafe(run, number, from_json(stream.read(size)))
    loop.call_soon_threadsafe(ended.set)


async def main() -> None:
    """Run the loop until the bridge is gone."""
    ended = asyncio.Event()
    threading.Thread(target=read, args=[asyncio.get_running_loop(), ended], daemon=True).start()
    await ended.wait()


asyncio.run(main())
