"""A floor: a kernel that is started, and answers with cells: ``bare_start.py TOOLS stdio``.

What it takes at least to start a notebook in a kernel of its own: a Python that starts another one
with ipykernel in it, and two cells.
"""

import sys
from pathlib import Path

from jupyter_client.manager import start_new_kernel

CELL = """
import json, sys
sys.path.insert(0, {programs!r})
from same_tools import add, fillers

def answer(line):
    request = json.loads(line)
    if request["method"] == "tools/list":
        functions = [add, *fillers({tools} - 1)]
        result = {{"tools": [{{"name": f.__name__, "description": f.__doc__}} for f in functions]}}
    else:
        text = str(add(**request["params"]["arguments"]))
        result = {{"content": [{{"type": "text", "text": text}}]}}
    response = {{"jsonrpc": "2.0", "id": request["id"], "result": result}}
    print(json.dumps(response, separators=(",", ":")), flush=True)
"""


def write(message: dict) -> None:
    """Write what a cell prints."""
    if message["msg_type"] == "stream":
        sys.stdout.write(message["content"]["text"])
        sys.stdout.flush()


manager, client = start_new_kernel()
try:
    client.execute_interactive(
        CELL.format(programs=str(Path(__file__).parent), tools=int(sys.argv[1]))
    )
    for line in sys.stdin:
        client.execute_interactive(f"answer({line!r})", output_hook=write)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
