"""``mcp-notebook``, and ``python -m mcp_notebook``: bridges at once, all else by way of `cli`.

Clients mostly start ``mcp-notebook stdio``, and wait. `cli`, whose library loads pydantic to read
the options, would take a fifth of that time, and 2 MB.
"""

import sys
from pathlib import Path

from mcp_notebook.cli.runner import exit_with_messages, run_http_bridge, run_stdio_bridge
from mcp_notebook.settings.settings import Settings

_BRIDGES = {"serve": run_http_bridge, "stdio": run_stdio_bridge}
_UNUSUAL = frozenset("*?[~$%")
"""Characters that `cli` may replace, on Windows."""


def main() -> None:
    """Run the command; exit as `cli.main.main`."""
    verb, *words = sys.argv[1:] or [""]
    if verb not in _BRIDGES or any(word[:1] == "-" or _UNUSUAL & {*word} for word in words):
        from mcp_notebook.cli import main as cli  # noqa: PLC0415 - takes a tenth of a second

        cli.main()
        return
    with exit_with_messages():
        _BRIDGES[verb](Settings.from_environment(), [Path(word) for word in words])


if __name__ == "__main__":
    main()
