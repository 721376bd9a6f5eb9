"""A card as plain text, for frontends without HTML.

Runs on any thread. Pure.
"""

from collections.abc import Mapping, Sequence

from mcp_notebook.kernel.notebook.cards.card_uses import describe_uses, list_uses
from mcp_notebook.kernel.notebook.cards.tool_facts import ParameterFacts, ToolFacts
from mcp_notebook.kernel.notebook.cards.tool_state import ToolState
from mcp_notebook.text.wording import make_printable

_DOT = " \N{MIDDLE DOT} "


def render_text(
    tools: Sequence[ToolFacts],
    states: Mapping[str, ToolState],
    stamp: str,
    *,
    is_remote: bool = False,
) -> str:
    """Return a card as text.

    Args:
        tools: What it says of each tool.
        states: What has become of each, by name.
        stamp: When and where the card was made.
        is_remote: Whether the notebook is on Binder or a JupyterHub.
    """
    sections = [_render_tool(facts, states[facts.name]) for facts in tools]
    live = [facts.name for facts in tools if states[facts.name].is_live]
    end = f"{describe_uses(list_uses(live, is_remote=is_remote))}\n{stamp}" if live else stamp
    return make_printable("\n\n".join([*sections, end]))


def _render_tool(facts: ToolFacts, state: ToolState) -> str:
    title = f" - {facts.title}" if facts.title else ""
    lines = [f"MCP tool {facts.signature}{title}"]
    options = [", ".join([state.word, *facts.badges]), *facts.details]
    lines.append(f"    [{_DOT.join(options)}]")
    if state.explanation:
        lines.append(f"    {state.explanation}")
    lines += [f"    {line}".rstrip() for line in facts.description.splitlines()]
    if state.is_live:
        lines += map(_render_parameter, facts.parameters)
        lines += [f"    Warning: {warning}" for warning in facts.warnings]
    return "\n".join(lines)


def _render_parameter(parameter: ParameterFacts) -> str:
    description = f". {parameter.description}" if parameter.description else ""
    return f"    - {parameter.name}: {parameter.allowed}, {parameter.presence}{description}"
