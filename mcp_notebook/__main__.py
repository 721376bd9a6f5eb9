"""``mcp-notebook`` and ``python -m mcp_notebook``: starts bridges directly, all else through `cli`.

Clients mostly start ``mcp-notebook stdio`` and wait for it. `cli`, whose library imports pydantic
to parse the options, would add a fifth to that time, and 2 MB.
"""

import sys
from pathlib import Path

from mcp_notebook.cli.runner import exit_with_messages, run_http_bridge, run_stdio_bridge
from mcp_notebook.settings.settings import Settings

_BRIDGES = {"serve": run_http_bridge, "stdio": run_stdio_bridge}
_UNUSUAL = frozenset("*?[~$%")
"""Characters that `cli` expands on Windows."""


def main() -> None:
    """Run the command, with the exit status of `cli.main.main`."""
    verb, *words = sys.argv[1:] or [""]
    if verb not in _BRIDGES or any(word[:1] == "-" or _UNUSUAL & {*word} for word in words):
        from mcp_notebook.cli import main as cli  # noqa: PLC0415 - takes a tenth of a second

        cli.main()
        return
    with exit_with_messages():
        _BRIDGES[verb](Settings.from_environment(), [Path(word) for word in words])


if __name__ == "__main__":
    main()
