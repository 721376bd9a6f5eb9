"""What `mcp-notebook call` asks for without showing it."""

import json
import os
import pty
import subprocess
import sys

import pytest

from mcp_notebook.cli.call import ask_for_secrets

SCHEMA = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "password": {"type": "string", "format": "password", "writeOnly": True},
        "pin": {"type": "integer", "writeOnly": True},
        "key": {"type": "string", "writeOnly": True},
    },
    "required": ["user", "password", "pin"],
}
PROGRAM = """
import json, sys
import anyio
from mcp_notebook.cli.call import ask_for_secrets
print(json.dumps(anyio.run(ask_for_secrets, *json.loads(sys.argv[1]))), file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
def test_secrets_that_a_tool_needs_are_typed_unseen():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps([SCHEMA, {"user": "ann"}])],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,  # its terminal is the one below, not that of the tests
    )
    os.close(theirs)
    try:
        said = b""
        for prompt, typed in ((b"password (hidden): ", b"hunter2"), (b"pin", b"4711")):
            while prompt not in said:
                said += process.stderr.read1()
            os.write(ours, typed + b"\n")
        said += process.stderr.read()
        process.wait(60)
        os.set_blocking(ours, False)
        try:
            echo = os.read(ours, 1000)
        except OSError:
            echo = b""
    finally:
        process.kill()
        process.stderr.close()
        os.close(ours)
    assert b"hunter2" not in echo
    answer = json.loads(said.decode().splitlines()[-1])
    assert answer == {"user": "ann", "password": "hunter2", "pin": 4711}


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [{}, {"user": "ann", "password": "x", "pin": 1}])
async def test_nobody_is_asked_without_a_terminal_or_without_need(arguments):
    assert await ask_for_secrets(SCHEMA, arguments) == arguments
