"""``mcp-notebook call``: asks on the terminal for the secrets that a tool needs.

Runs in the process of the command. What stands in a command is seen by the other users of the
machine, who may list processes, and is kept in the shell's history; what is typed here is not.
"""

import getpass
import sys
from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from mcp_notebook.cli.shell_arguments import read_arguments
from mcp_notebook.text.redaction import has_secrets
from mcp_notebook.text.wording import make_printable


async def ask_for_secrets(
    schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call with the secrets that it lacks, typed without being shown.

    Nobody is asked if stdin is no terminal: the tool then says what it misses.

    Args:
        schema: The tool's input schema.
        arguments: What the command says.
    """
    missing = [
        name
        for name in schema.get("required", ())
        if name not in arguments and has_secrets(schema.get("properties", {}).get(name), schema)
    ]
    if not missing or not sys.stdin.isatty():
        return dict(arguments)
    texts = []
    for name in missing:
        prompt = f"{make_printable(name)} (is not shown): "
        texts.append((name, await anyio.to_thread.run_sync(getpass.getpass, prompt)))
    return dict(arguments) | read_arguments(texts, schema)
