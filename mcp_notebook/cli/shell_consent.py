"""``mcp-notebook call``: asks on the terminal before a tool that wants to be confirmed.

Runs in the process of the command. The same tools ask as for clients, with the same question.
"""

import sys
from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.consent.policy import ConsentPolicy, make_denial
from mcp_notebook.bridge.consent.question import make_question, write_question
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note

_YES = frozenset({"y", "yes"})


async def ask_on_terminal(
    settings: Settings, entry: CatalogEntry, arguments: Mapping[str, Any]
) -> None:
    """Ask whoever started the command, if the tool needs consent.

    Raises:
        ConsentDenied: They do not agree, or stdin is no terminal.
    """
    if not ConsentPolicy.from_settings(settings).applies_to(entry.tool):
        return
    if not sys.stdin.isatty():
        raise make_denial(
            entry.name, "Nobody can be asked: stdin is no terminal. Add `--yes` to agree to it."
        )
    question = make_question(entry, arguments, caller=Caller(name="mcp-notebook"))
    print_note(write_question(question))
    print_note("Run it? y/N: ", end="")
    answer = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    if answer.strip().lower() not in _YES:
        raise make_denial(entry.name, "You did not agree to it.")
