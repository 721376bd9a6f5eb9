"""Why clients miss tools of this notebook, as far as its kernel knows.

Runs on any thread; pure.
"""

from collections.abc import Iterator

from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.missing_tools import (
    META_TOOLS,
    READ_RESOURCE,
    explain_dropped,
    explain_reserved_name,
)


def explain_absent_tools(registry: ToolRegistry, refusal: str | None) -> Iterator[str]:
    """Yield a sentence or two for each tool that clients miss.

    Args:
        registry: The notebook's tools.
        refusal: Why the last bridge was refused, if it was.
    """
    missing = [
        explain_dropped("", name, dropped, registry.find_new_name(dropped))
        for name, dropped in registry.dropped.items()
    ]
    missing += [
        explain_reserved_name("", name, f"<notebook>_{name}")
        for name in (*META_TOOLS, READ_RESOURCE)
        if registry.get(name) is not None
    ]
    yield from (f"{tool.tool}: {tool.reason} {tool.next_step}" for tool in missing)
    if refusal is not None:
        yield f"all tools, for a client whose bridge was refused: {refusal}"
