"""Lists problems with the notebook's tools: tools that clients miss, and references to none.

Runs on any thread. Pure.
"""

from collections.abc import Iterator, Sequence

from mcp_notebook import meta_keys
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.missing_tools import (
    RESERVED_NAMES,
    explain_dropped,
    explain_reserved_name,
)


def list_problems(registry: ToolRegistry, refusal: str | None) -> Iterator[str]:
    """Yield a sentence or two for each problem.

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
        for name in RESERVED_NAMES
        if registry.get(name) is not None
    ]
    yield from (f"{tool.tool}: {tool.reason} {tool.next_step}" for tool in missing)
    for tool in registry.tools:
        for name in (tool.info.meta or {}).get(meta_keys.RELATED, ()):
            if registry.get(name) is None:
                yield f"{tool.name}: `related` lists `{name}`, but the notebook has no such tool."
    if registry.orphans:
        yield describe_orphans(registry.orphans)
    if refusal is not None:
        yield f"All tools are missing for a client whose bridge was refused: {refusal}"


def describe_orphans(tools: Sequence[DeclaredTool]) -> str:
    """Return that the cells of these tools were deleted, and how to remove the tools."""
    names = ", ".join(f"`{tool.name}`" for tool in tools)
    variables = [tool.variable for tool in tools if tool.variable and tool.origin is None]
    if len(variables) == len(tools):
        line = f"del {', '.join(dict.fromkeys(variables))}"
    else:
        quoted = ", ".join(f'"{tool.name}"' for tool in tools)
        line = f"from mcp_notebook import registry; registry.remove({quoted})"
    if len(tools) == 1:
        seen = f"the {tools[0].kind_word}"
        return f"The cell of {names} was deleted. Clients still see {seen}; `{line}` removes it."
    kinds = {tool.kind_word for tool in tools}
    seen = f"the {kinds.pop()}s" if len(kinds) == 1 else "them"
    return f"The cells of {names} were deleted. Clients still see {seen}; `{line}` removes them."
