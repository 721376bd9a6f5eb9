"""Renders tools as a card and as the table of ``%mcp list``, in HTML and plain text.

Runs on any thread. Pure: facts go in, a MIME bundle comes out.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType

from mcp_notebook.kernel.notebook.cards.tool_facts import (
    DESTRUCTIVE,
    READ_ONLY,
    ParameterFacts,
    ToolFacts,
    describe_in_line,
    format_signature,
    gather_facts,
)
from mcp_notebook.kernel.notebook.output_html import (
    Column,
    render_box,
    render_code,
    render_soft,
    render_table,
    render_text,
    write_table,
)
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.text.wording import count, make_printable
from mcp_notebook.wire import messages

MAX_UNFOLDED = 5
"""Tools that a card shows in full; with more tools, each is folded to a line."""
_RULE = "<hr style='border:none;border-top:1px solid #8884;margin:.5em 0'>"
_PILL = "<span style='background:{};border-radius:9px;padding:0 8px'>{}</span>"
_BLUE, _RED, _GREY = "#0969da33", "#d1242f33", "#8883"
_COLORS = {READ_ONLY: _BLUE, DESTRUCTIVE: _RED}
_ICON = "<img src='{}' alt='' style='height:1.2em;display:inline;vertical-align:text-bottom'> "
_DOT = " \N{MIDDLE DOT} "


def build_card(
    tools: Sequence[DeclaredTool],
    list_hosts: Callable[[DeclaredTool], Sequence[str]] = lambda _tool: (),
    list_changes: Callable[[DeclaredTool], Sequence[str]] = lambda _tool: (),
) -> dict[str, str]:
    """Return the MIME bundle of a card: what is always true of these tools.

    Args:
        tools: The tools.
        list_hosts: Returns the origins that a tool's own view may load from.
        list_changes: Returns how a tool differs from the notebook's lock, in a line at first.
    """
    facts = [gather_facts(tool, list_hosts(tool), list_changes(tool)[:1]) for tool in tools]
    return {
        "text/html": make_printable(_render_html(facts)),
        "text/plain": make_printable("\n".join(map(_render_text, facts))),
    }


# -- HTML ------------------------------------------------------------------------------------------


def _render_html(tools: Sequence[ToolFacts]) -> str:
    if len(tools) > MAX_UNFOLDED:
        folded = "".join(map(_render_folded, tools))
        kinds = Counter(facts.kind for facts in tools)
        counts = (count(number, f"MCP {kind}") for kind, number in kinds.items())
        return render_box(f"<b>{', '.join(counts)}</b>{folded}")
    return render_box(_RULE.join(map(_render_unfolded, tools)))


def _render_unfolded(facts: ToolFacts) -> str:
    heading, description = _render_heading(facts), _render_description(facts.description)
    return f"{render_soft(f'MCP {facts.kind}')} {heading}<br>{description}{_render_details(facts)}"


def _render_folded(facts: ToolFacts) -> str:
    description = facts.description.strip()
    paragraph, _, rest = description.partition("\n\n")
    summary, _, more = paragraph.partition("\n")
    below = _render_description(description if more else rest)
    return (
        f"<details><summary>{_render_heading(facts)} {render_soft(render_text(summary))}</summary>"
        f"{below}{_render_details(facts)}</details>"
    )


def _render_heading(facts: ToolFacts) -> str:
    icons = "".join(_ICON.format(escape(address)) for address in facts.icons)
    name = f"<b>{render_text(facts.name)}</b>"
    pills = (_PILL.format(_COLORS.get(text, _GREY), render_text(text)) for text in facts.badges)
    return " ".join(filter(None, [f"{icons}{name}", render_text(facts.title), *pills]))


def _render_description(description: str) -> str:
    # Lists keep their lines; paragraphs flow.
    html = render_text(description).replace("\n\n- ", "\n- ")
    return html.replace("\n\n", "<br><br>").replace("\n- ", "<br>- ")


def _render_details(facts: ToolFacts) -> str:
    items = "".join(map(_render_parameter, facts.parameters))
    parameters = f"<ul style='margin:0'>{items}</ul>" if items else ""
    details = _DOT.join(filter(None, [*facts.details, facts.turns]))
    below = [render_soft(render_code(details))] if details else []
    below += [f"&#9888; {render_code(warning)}" for warning in facts.warnings]
    return parameters + "".join(f"<div>{line}</div>" for line in below)


def _render_parameter(parameter: ParameterFacts) -> str:
    presence = parameter.presence
    presence = f"<b>{presence}</b>" if parameter.is_required else render_text(presence)
    words = f"<code>{render_text(parameter.name)}</code> {render_text(parameter.allowed)}"
    description = f". {render_text(parameter.description)}" if parameter.description else ""
    return f"<li>{words}, {presence}{description}</li>"


# -- plain text ------------------------------------------------------------------------------------


def _render_text(facts: ToolFacts) -> str:
    """Return what a console shows; the signature has the parameters."""
    title = f" - {facts.title}" if facts.title else ""
    options = _DOT.join([*facts.badges, *facts.details])
    lines = [
        f"MCP {facts.kind} {facts.signature}{title}",
        *filter(None, [f"[{options}]" if options else ""]),
    ]
    lines += facts.description.strip().splitlines()[:1]
    lines += [f"Warning: {warning}" for warning in facts.warnings]
    return "\n    ".join(lines)


# -- the table of `%mcp list` ----------------------------------------------------------------------


_COLUMNS = (
    Column("tool", 24, grows=True, wraps=True, is_code=True),
    Column("description", 24, grows=True, wraps=True),
)


def build_table(
    tools: Sequence[DeclaredTool], names: Mapping[str, messages.ListedName] = MappingProxyType({})
) -> dict[str, str]:
    """Return the MIME bundle that lists tools, one per line.

    Args:
        tools: The tools, in order.
        names: The tools that clients see under other names, by their own names.
    """
    rows = [
        (
            _write_signature(tool, names.get(tool.name)),
            describe_in_line(tool),
        )
        for tool in tools
    ]
    html = render_table(
        _COLUMNS,
        [list(map(render_text, row)) for row in rows],
    )
    text = "\n".join(write_table([column.title for column in _COLUMNS], rows))
    return {"text/html": make_printable(html), "text/plain": make_printable(text)}


def _write_signature(tool: DeclaredTool, listed: messages.ListedName | None) -> str:
    signature = format_signature(tool)
    return signature if listed is None else listed.name + signature.removeprefix(tool.name)
