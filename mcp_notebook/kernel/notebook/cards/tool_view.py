"""Renders tools as a card and as the table of ``%mcp list``, in HTML and plain text.

Runs on any thread. Pure: facts go in, a MIME bundle comes out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from mcp_notebook.kernel.notebook.cards.tool_facts import (
    DESTRUCTIVE,
    READ_ONLY,
    ParameterFacts,
    ToolFacts,
    format_signature,
)
from mcp_notebook.kernel.notebook.cards.tool_state import ToolState
from mcp_notebook.kernel.notebook.output_html import COPY_BUTTON, render_box, render_code
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.text.wording import count, make_printable
from mcp_notebook.wire import messages

MAX_UNFOLDED = 5
"""Tools that a card shows in full; with more tools, each is folded to a line."""
_SOFT = "opacity:.7"
_SMALL = "opacity:.7;font-size:.9em;margin-top:.5em"
_RULE = "border-top:1px solid #8884;margin:.7em 0 .6em"
_PILL = (
    "display:inline-block;border-radius:1em;padding:0 .6em;margin-left:.4em;font-size:.85em;"
    "background:{}"
)
_GREEN, _BLUE, _RED, _GREY = "#2da44e33", "#0969da33", "#d1242f33", "#88888833"
_COLORS = {"live": _GREEN, READ_ONLY: _BLUE, DESTRUCTIVE: _RED}
_TABLE = "margin:.3em 0;border:none;font-size:inherit;width:auto"
_CELL = "text-align:left;vertical-align:top;padding:.1em 1.4em .1em 0;border:none;background:none;"
_MAX_NOWRAP = 40
"""Characters of a table cell that stays on one line."""
_TAG = re.compile(r"<script>.*?</script>|<[^>]*>")


_DOT = " \N{MIDDLE DOT} "
_CLIENT = "claude-code"
"""The client in the example command; ``mcp-notebook install`` lists the others."""


def build_card(
    tools: Sequence[ToolFacts],
    states: Mapping[str, ToolState],
    stamp: str,
    *,
    is_remote: bool = False,
) -> dict[str, str]:
    """Return the MIME bundle of a card.

    Args:
        tools: The facts on each tool.
        states: The state of each tool, by name.
        stamp: When and where the card was made.
        is_remote: Whether the notebook is on Binder or JupyterHub, away from its clients.
    """
    live = [facts for facts in tools if states[facts.name].is_live]
    uses = _list_uses(live, is_remote=is_remote) if live else ()
    return {
        "text/html": make_printable(_render_html(tools, states, uses, stamp)),
        "text/plain": make_printable(_render_text(tools, states, uses, stamp)),
    }


@dataclass(frozen=True)
class _Use:
    """A line to copy, and its purpose."""

    purpose: str
    """Its effect: "Remove it"."""
    line: str
    note: str
    """Where to run it, or a remark."""


def _list_uses(tools: Sequence[ToolFacts], *, is_remote: bool) -> tuple[_Use, ...]:
    """Return the lines to copy for these tools."""
    connect = (
        _Use(
            "Connect a client",
            "%mcp status",
            "In a cell, for your computer.",
        )
        if is_remote
        else _Use("Connect a client", f"mcp-notebook install {_CLIENT}", "In a terminal, once.")
    )
    it, one = ("it", "it") if len(tools) == 1 else ("them", "one")
    variables = [facts.variable for facts in tools if facts.variable is not None]
    if len(variables) == len(tools):
        remove = f"del {', '.join(dict.fromkeys(variables))}"
    else:
        names = ", ".join(f'"{facts.name}"' for facts in tools)
        remove = f"from mcp_notebook import registry; registry.remove({names})"
    return (
        _Use(f"Try {one}", f"%mcp try {tools[0].name}", "A form, in a cell."),
        connect,
        _Use(f"Remove {it}", remove, "Deleting the cell does not."),
    )


# -- HTML: light or dark, with or without scripts and styles ---------------------------------------


def _render_html(
    tools: Sequence[ToolFacts], states: Mapping[str, ToolState], uses: Sequence[_Use], stamp: str
) -> str:
    if len(tools) > MAX_UNFOLDED:
        folded = "".join(_render_folded(facts, states[facts.name]) for facts in tools)
        body = f"<div><b>{count(len(tools), 'MCP tool')}</b></div>{folded}"
    else:
        sections = [_render_unfolded(facts, states[facts.name]) for facts in tools]
        body = f"<div style='{_RULE}'></div>".join(sections)
    end = f"<div style='{_SMALL}'>{escape(stamp)}</div>"
    return render_box(f"{body}{_render_uses(uses)}{end}")


def _render_unfolded(facts: ToolFacts, state: ToolState) -> str:
    kind = f"<span style='{_SOFT}'>MCP tool</span> "
    return f"<div>{_render_heading(facts, state, kind)}</div>{_render_body(facts, state)}"


def _render_folded(facts: ToolFacts, state: ToolState) -> str:
    summary = facts.description.strip().partition("\n")[0]
    words = f" <span style='{_SOFT}'>{escape(summary)}</span>" if summary else ""
    return (
        f"<details><summary>{_render_heading(facts, state)}{words}</summary>"
        f"<div style='margin:.2em 0 .8em 1.1em'>{_render_body(facts, state)}</div></details>"
    )


def _render_heading(facts: ToolFacts, state: ToolState, kind: str = "") -> str:
    icons = "".join(
        f"<img src='{escape(address)}' alt='' "
        "style='height:1.2em;display:inline-block;vertical-align:text-bottom;margin:0 .3em 0 0'>"
        for address in facts.icons
    )
    title = f" {escape(facts.title)}" if facts.title else ""
    badges = facts.badges if state.is_live else ()
    pills = [_render_pill(text) for text in (state.word, *badges)]
    name = f"<code style='background:none;padding:0'><b>{escape(facts.name)}</b></code>"
    return f"{icons}{kind}{name}{title} {' '.join(pills)}"


def _render_pill(text: str) -> str:
    style = _PILL.format(_COLORS.get(text, _GREY))
    dot = "<span style='color:#2da44e'>&#9679;</span> " if text == "live" else ""
    return f"<span style='{style}'>{dot}{escape(text)}</span>"


def _render_body(facts: ToolFacts, state: ToolState) -> str:
    why = f"<div>{render_code(state.explanation)}</div>" if state.explanation else ""
    # Lists keep their lines; paragraphs flow.
    description = escape(facts.description).replace("\n\n", "<br><br>")
    description = description.replace("\n- ", "<br>- ")
    if not state.is_live:
        return f"{why}<div style='{_SOFT}'>{description}</div>"
    details = _DOT.join(facts.details)
    details = f"<div style='{_SOFT}'>{escape(details)}</div>" if details else ""
    warnings = "".join(
        f"<div><span style='color:#d4700f'>&#9888;</span> {render_code(warning)}</div>"
        for warning in facts.warnings
    )
    return f"{why}<div>{description}</div>{_render_parameters(facts.parameters)}{details}{warnings}"


def _render_parameters(parameters: Sequence[ParameterFacts]) -> str:
    if not parameters:
        return f"<div style='{_SOFT}'>No parameters.</div>"
    rows = "".join(
        _render_row(
            f"<code>{escape(item.name)}</code>",
            escape(item.allowed),
            _render_presence(item),
            escape(item.description),
        )
        for item in parameters
    )
    return (
        f"<table style='margin:.4em 0;border:none;font-size:inherit'><tbody>{rows}</tbody></table>"
    )


def _render_row(*cells: str) -> str:
    row = "".join(
        f"<td style='{_CELL}{'white-space:nowrap' * _is_short(cell)}'>{cell}</td>" for cell in cells
    )
    return f"<tr style='background:none'>{row}</tr>"


def _is_short(cell: str) -> bool:
    return len(_TAG.sub("", cell)) < _MAX_NOWRAP


def _render_presence(parameter: ParameterFacts) -> str:
    if parameter.is_required:
        return "<b>required</b>"
    return f"<span style='{_SOFT}'>{escape(parameter.presence)}</span>"


def _render_uses(uses: Sequence[_Use]) -> str:
    if not uses:
        return ""
    rows = "".join(
        _render_row(
            escape(use.purpose),
            f"<code style='user-select:all'>{escape(use.line)}</code>{COPY_BUTTON}",
            render_code(use.note),
        )
        for use in uses
    )
    purposes = ", ".join(use.purpose.lower() for use in uses)
    return (
        f"<details style='margin-top:.5em'><summary style='{_SOFT}'>"
        f"{escape(purposes.capitalize())}</summary>"
        f"<table style='{_TABLE}'><tbody>{rows}</tbody></table></details>"
    )


# -- plain text ------------------------------------------------------------------------------------


def _render_text(
    tools: Sequence[ToolFacts], states: Mapping[str, ToolState], uses: Sequence[_Use], stamp: str
) -> str:
    sections = [_render_tool(facts, states[facts.name]) for facts in tools]
    width = max((len(use.purpose) for use in uses), default=0)
    lines = [f"{use.purpose:<{width}}  {use.line}  ({use.note})" for use in uses]
    return "\n\n".join([*sections, "\n".join([*lines, stamp])])


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


# -- the table of `%mcp list` ----------------------------------------------------------------------


_LEFT = "<td style='text-align:left'>"  # notebooks align cells to the right


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
            tool.info.description.strip().partition("\n")[0],
        )
        for tool in tools
    ]
    width = max((len(signature) for signature, _ in rows), default=0)
    body = "".join(
        f"<tr>{_LEFT}<code>{escape(signature)}</code></td>{_LEFT}{escape(summary)}</td></tr>"
        for signature, summary in rows
    )
    html = f"<table><tbody>{body}</tbody></table>"
    text = "\n".join(f"{signature:<{width}}  {summary}".rstrip() for signature, summary in rows)
    return {"text/html": make_printable(html), "text/plain": make_printable(text)}


def _write_signature(tool: DeclaredTool, listed: messages.ListedName | None) -> str:
    signature = format_signature(tool)
    return signature if listed is None else listed.name + signature.removeprefix(tool.name)
