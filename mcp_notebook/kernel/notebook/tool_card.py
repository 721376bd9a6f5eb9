"""The card that a notebook shows for its tools: HTML, with a plain-text twin.

Runs in the user's kernel. Pure: text in, text out; `kernel.notebook.magics` shows it.
"""

import functools
import inspect
import re
from collections.abc import Collection, Sequence
from html import escape
from typing import Annotated, Any, get_args, get_origin

from mcp_notebook import meta_keys
from mcp_notebook.kernel.schemas.input_schema import FunctionSchema
from mcp_notebook.kernel.schemas.validation_messages import describe_schema, format_value
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool

_STYLE = (
    "border:1px solid #8884;border-left:4px solid #f37726;border-radius:4px;padding:.5em 1em;"
    "margin:.3em 0;max-width:60em;line-height:1.4"
)


def build_card(tools: Sequence[DeclaredTool], names: Collection[str]) -> dict[str, str]:
    """Return the MIME bundle that presents tools to their author.

    Args:
        tools: The tools that were declared.
        names: Names of all tools of the notebook at this moment.
    """
    return {
        "text/html": "".join(_html(tool, _warnings(tool, names)) for tool in tools),
        "text/plain": "\n\n".join(_text(tool, _warnings(tool, names)) for tool in tools),
    }


def build_table(tools: Sequence[DeclaredTool]) -> dict[str, str]:
    """Return the MIME bundle that lists tools, one a line."""
    rows = [(tool.name, format_signature(tool), _first_line(tool)) for tool in tools]
    width = max((len(shown) for _, shown, _ in rows), default=0)
    body = "".join(
        f"<tr><td style='text-align:left'><code>{escape(shown)}</code></td>"
        f"<td style='text-align:left'>{escape(line)}</td></tr>"
        for _, shown, line in rows
    )
    return {
        "text/html": f"<table><tbody>{body}</tbody></table>",
        "text/plain": "\n".join(f"{shown:<{width}}  {line}".rstrip() for _, shown, line in rows),
    }


def format_signature(tool: DeclaredTool) -> str:
    """Return the tool's signature as its author wrote it, under the tool's name."""
    if not isinstance(tool.schema, FunctionSchema) or tool.options.flatten:
        return _by_schema(tool)
    try:
        signature = inspect.signature(tool.function)
    except (TypeError, ValueError):
        return _by_schema(tool)
    fixed = tool.function.keywords if isinstance(tool.function, functools.partial) else ()
    parameters = [
        parameter.replace(annotation=_bare(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name not in (*tool.schema.injected, *tool.schema.hidden, *fixed)
    ]
    shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return f"{tool.name}{shown}"


def _by_schema(tool: DeclaredTool) -> str:
    """Return a signature that says what the tool's schema says."""
    schema = tool.info.input_schema
    parameters = [
        name if name in schema.get("required", ()) else f"{name}={_default(item)}"
        for name, item in schema.get("properties", {}).items()
        if item is not False
    ]
    return f"{tool.name}({', '.join(parameters)})"


def _default(schema: Any) -> str:
    has_one = isinstance(schema, dict) and "default" in schema
    return format_value(schema["default"]) if has_one else "..."


def _bare(annotation: Any) -> Any:
    """Return a type hint without what `Annotated` adds: the card's table says that better."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _first_line(tool: DeclaredTool) -> str:
    return tool.info.description.strip().partition("\n")[0]


def _parameters(tool: DeclaredTool) -> list[tuple[str, str, str]]:
    """Return name, allowed values and description of each parameter."""
    schema = tool.info.input_schema
    required = schema.get("required", ())
    rows = []
    for name, item in schema.get("properties", {}).items():
        allowed = describe_schema(item, schema)
        said = item if isinstance(item, dict) else {}
        if name not in required:
            default = f" = {format_value(said['default'])}" if "default" in said else ""
            allowed = f"{allowed}{default or ', optional'}"
        rows.append((name, allowed, said.get("description", "")))
    return rows


_HINTS = {
    ("readOnlyHint", True): "read-only",
    ("readOnlyHint", False): "not read-only",
    ("destructiveHint", True): "destructive",
    ("destructiveHint", False): "not destructive",
    ("idempotentHint", True): "idempotent",
    ("idempotentHint", False): "not idempotent",
    ("openWorldHint", True): "open world",
    ("openWorldHint", False): "closed world",
}


def _returned(tool: DeclaredTool) -> str:
    """Return what the tool's results are for a program; "" if they are text only."""
    if tool.output is None:
        return ""
    schema = tool.output.schema
    inner = tool.output.unwrap(schema["properties"]) if tool.output.wrapped else schema
    return describe_schema(inner, schema)


def _facts(tool: DeclaredTool) -> str:
    """Return on one line what the author said besides title, description and pictures."""
    meta = tool.info.meta or {}
    hints = [_HINTS[hint] for hint in (tool.info.annotations or {}).items() if hint in _HINTS]
    facts = [", ".join(hints)]
    if tags := meta.get(meta_keys.TAGS):
        facts.append(f"tags: {', '.join(tags)}")
    if priority := meta.get(meta_keys.PRIORITY):
        facts.append(f"priority {priority:g}")
    if returned := _returned(tool):
        facts.append(f"data: {returned}")
    return " \N{MIDDLE DOT} ".join(fact for fact in facts if fact)


def _warnings(tool: DeclaredTool, names: Collection[str]) -> tuple[str, ...]:
    unknown = [
        f"`related` names `{other}`, but this notebook has no such tool (yet)."
        for other in (tool.info.meta or {}).get(meta_keys.RELATED, ())
        if other not in names
    ]
    return (*tool.warnings, *unknown)


def _pictures(tool: DeclaredTool) -> str:
    return "".join(
        f"<img src='{escape(icon['src'])}' alt='' "
        "style='height:1.2em;display:inline-block;vertical-align:text-bottom;margin:0 .3em 0 0'>"
        for icon in tool.info.icons or ()
    )


def _html(tool: DeclaredTool, warned: Sequence[str]) -> str:
    rows = "".join(
        f"<tr><td style='text-align:left'><code>{escape(name)}</code></td>"
        f"<td style='text-align:left'>{escape(allowed)}</td>"
        f"<td style='text-align:left'>{escape(description)}</td></tr>"
        for name, allowed, description in _parameters(tool)
    )
    warnings = "".join(
        f"<div><span style='color:#f37726'>&#9888;</span> {_with_code(warning)}</div>"
        for warning in warned
    )
    # Lines of a list stay lines, the others flow.
    description = escape(tool.info.description).replace("\n\n", "<br><br>")
    description = description.replace("\n- ", "<br>- ")
    title = f" <b>{escape(tool.info.title)}</b>" if tool.info.title else ""
    facts = f"<div style='opacity:.7'>{escape(_facts(tool))}</div>" if _facts(tool) else ""
    return (
        f"<div style='{_STYLE}'><div>{_pictures(tool)}<b>MCP tool</b>{title} "
        f"<code>{escape(format_signature(tool))}</code></div>{facts}<div>{description}</div>"
        f"<table style='margin:.3em 0'><tbody>{rows}</tbody></table>{warnings}</div>"
    )


def _with_code(text: str) -> str:
    """Return a message as HTML: what it has between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _text(tool: DeclaredTool, warned: Sequence[str]) -> str:
    title = f" - {tool.info.title}" if tool.info.title else ""
    lines = [f"MCP tool {format_signature(tool)}{title}"]
    if facts := _facts(tool):
        lines.append(f"    [{facts}]")
    lines += [f"    {line}".rstrip() for line in tool.info.description.splitlines()]
    lines += [
        f"    - {name}: {allowed}" + (f". {description}" if description else "")
        for name, allowed, description in _parameters(tool)
    ]
    lines += [f"    Warning: {warning}" for warning in warned]
    return "\n".join(lines)
