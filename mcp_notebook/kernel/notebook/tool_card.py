"""The card that a notebook shows for a tool, and the list of all tools: HTML and plain text.

Runs on the kernel's main thread. Pure: tools go in, MIME bundles come out.
"""

import functools
import inspect
import re
from collections.abc import Collection, Sequence
from html import escape
from typing import Annotated, Any, get_args, get_origin

from mcp_notebook import meta_keys
from mcp_notebook.kernel.schemas.input_schema import FunctionSchema
from mcp_notebook.kernel.schemas.schema_words import describe_schema
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.redaction import has_secrets
from mcp_notebook.wording import make_printable

_STYLE = (
    "border:1px solid #8884;border-left:4px solid #f37726;border-radius:4px;padding:.5em 1em;"
    "margin:.3em 0;max-width:60em;line-height:1.4"
)
_LEFT = "<td style='text-align:left'>"  # notebooks align cells to the right
_ARRAY = re.compile(r"numpy\.ndarray\[[^()]*?, numpy\.dtype\[(?:numpy\.)?([\w~.]+)\]\]")
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


def build_card(tools: Sequence[DeclaredTool], names: Collection[str]) -> dict[str, str]:
    """Return the MIME bundle that presents tools to their author.

    Args:
        tools: The tools that were declared.
        names: Names of all tools that the notebook has now.
    """
    cards = [(tool, _collect_warnings(tool, names)) for tool in tools]
    removal = _explain_removal(tools)
    html = "".join(_render_html(tool, warnings) for tool, warnings in cards)
    return _make_bundle(
        f"{html}<div style='opacity:.7'>{_render_code(removal)}</div>",
        "\n\n".join([*(_render_text(tool, warnings) for tool, warnings in cards), removal]),
    )


def build_table(tools: Sequence[DeclaredTool]) -> dict[str, str]:
    """Return the MIME bundle that lists tools, one per line."""
    rows = [
        (format_signature(tool), tool.info.description.strip().partition("\n")[0]) for tool in tools
    ]
    width = max((len(signature) for signature, _ in rows), default=0)
    body = "".join(
        f"<tr>{_LEFT}<code>{escape(signature)}</code></td>{_LEFT}{escape(summary)}</td></tr>"
        for signature, summary in rows
    )
    return _make_bundle(
        f"<table><tbody>{body}</tbody></table>",
        "\n".join(f"{signature:<{width}}  {summary}".rstrip() for signature, summary in rows),
    )


def _make_bundle(html: str, text: str) -> dict[str, str]:
    return {"text/html": make_printable(html), "text/plain": make_printable(text)}


def format_signature(tool: DeclaredTool) -> str:
    """Return the tool's name with its parameters as its author wrote them."""
    if not isinstance(tool.schema, FunctionSchema) or tool.options.flatten:
        return _format_schema(tool)
    try:
        signature = inspect.signature(tool.function)
    except (TypeError, ValueError):
        return _format_schema(tool)
    bound = tool.function.keywords if isinstance(tool.function, functools.partial) else ()
    parameters = [
        parameter.replace(annotation=_strip_annotated(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name not in (*tool.schema.injected, *tool.schema.hidden, *bound)
    ]
    schema = tool.info.input_schema
    # In the order of the signature; clients may know them by other names.
    for index, item in enumerate(schema["properties"].values()):
        if has_secrets(item, schema) and not _lacks_default(parameters[index]):
            parameters[index] = parameters[index].replace(default=_Omitted())
    visible = signature.replace(parameters=parameters, return_annotation=signature.empty)
    # What numpy before 2.5 makes of `NDArray[np.float64]` is twice as long as the card is wide.
    text = _ARRAY.sub(r"NDArray[\1]", f"{tool.name}{visible}")
    return text.replace("NDArray[numpy.", "NDArray[").replace("pydantic.types.Secret", "Secret")


def _lacks_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty or parameter.default is None


class _Omitted:
    """Stands for a default that is a secret."""

    def __repr__(self) -> str:
        return "..."


def _format_schema(tool: DeclaredTool) -> str:
    """Return a signature with the parameters that the tool's input schema has."""
    schema = tool.info.input_schema
    parameters = [
        name if name in schema.get("required", ()) else f"{name}={_format_default(item)}"
        for name, item in schema.get("properties", {}).items()
        if item is not False
    ]
    return f"{tool.name}({', '.join(parameters)})"


def _format_default(schema: Any) -> str:
    has_default = isinstance(schema, dict) and "default" in schema
    is_visible = has_default and not has_secrets(schema, schema)
    return format_value(schema["default"]) if is_visible else "..."


def _strip_annotated(annotation: Any) -> Any:
    """Return a type hint without the constraints of `Annotated`, which are in another column."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _describe_parameters(tool: DeclaredTool) -> list[tuple[str, str, str]]:
    """Return name, allowed values and description of each parameter."""
    schema = tool.info.input_schema
    required = schema.get("required", ())
    rows = []
    for name, item in schema.get("properties", {}).items():
        allowed = describe_schema(item, schema)
        keywords = item if isinstance(item, dict) else {}
        if name not in required:
            has_default = "default" in keywords and not has_secrets(keywords, schema)
            default = f"default {format_value(keywords['default'])}" if has_default else "optional"
            allowed = f"{allowed}, {default}"
        rows.append((name, allowed, keywords.get("description", "")))
    return rows


def _describe_output(tool: DeclaredTool) -> str:
    """Describe the structured results of a tool; "" if it has none."""
    if tool.output is None:
        return ""
    schema = tool.output.schema
    content = tool.output.unwrap(schema["properties"]) if tool.output.is_wrapped else schema
    return describe_schema(content, schema)


def _describe_options(tool: DeclaredTool) -> str:
    """Return one line with the options that the rest of the card does not show; may be empty."""
    meta = tool.info.meta or {}
    hints = [_HINTS[hint] for hint in (tool.info.annotations or {}).items() if hint in _HINTS]
    if meta.get(meta_keys.CONFIRM):
        hints.append("asks before each call")
    parts = [", ".join(hints)]
    if tags := meta.get(meta_keys.TAGS):
        parts.append(f"tags: {', '.join(tags)}")
    if priority := meta.get(meta_keys.PRIORITY):
        parts.append(f"priority {priority:g}")
    if related := meta.get(meta_keys.RELATED):
        parts.append(f"see also: {', '.join(related)}")
    if output := _describe_output(tool):
        parts.append(f"structured result: {output}")
    return " \N{MIDDLE DOT} ".join(part for part in parts if part)


def _collect_warnings(tool: DeclaredTool, names: Collection[str]) -> tuple[str, ...]:
    missing = [
        f"`related` lists `{other}`, but this notebook has no tool of that name yet."
        for other in (tool.info.meta or {}).get(meta_keys.RELATED, ())
        if other not in names
    ]
    return (*tool.warnings, *missing)


def _explain_removal(tools: Sequence[DeclaredTool]) -> str:
    names = " ".join(tool.name for tool in tools)
    it = "it" if len(tools) == 1 else "them"
    return f"`%mcp remove {names}` removes {it}; deleting the cell does not."


def _render_html(tool: DeclaredTool, warnings: Sequence[str]) -> str:
    title = f" <b>{escape(tool.info.title)}</b>" if tool.info.title else ""
    options = _describe_options(tool)
    options = f"<div style='opacity:.7'>{escape(options)}</div>" if options else ""
    # Lists keep their lines; paragraphs flow.
    description = escape(tool.info.description).replace("\n\n", "<br><br>")
    description = description.replace("\n- ", "<br>- ")
    rows = "".join(
        f"<tr>{_LEFT}<code>{escape(name)}</code></td>{_LEFT}{escape(allowed)}</td>"
        f"{_LEFT}{escape(text)}</td></tr>"
        for name, allowed, text in _describe_parameters(tool)
    )
    notes = "".join(
        f"<div><span style='color:#f37726'>&#9888;</span> {_render_code(warning)}</div>"
        for warning in warnings
    )
    return (
        f"<div style='{_STYLE}'><div>{_render_icons(tool)}<b>MCP tool</b>{title} "
        f"<code>{escape(format_signature(tool))}</code></div>{options}<div>{description}</div>"
        f"<table style='margin:.3em 0'><tbody>{rows}</tbody></table>{notes}</div>"
    )


def _render_icons(tool: DeclaredTool) -> str:
    return "".join(
        f"<img src='{escape(icon['src'])}' alt='' "
        "style='height:1.2em;display:inline-block;vertical-align:text-bottom;margin:0 .3em 0 0'>"
        for icon in tool.info.icons or ()
    )


def _render_code(text: str) -> str:
    """Return a message as HTML in which text between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _render_text(tool: DeclaredTool, warnings: Sequence[str]) -> str:
    title = f" - {tool.info.title}" if tool.info.title else ""
    lines = [f"MCP tool {format_signature(tool)}{title}"]
    if options := _describe_options(tool):
        lines.append(f"    [{options}]")
    lines += [f"    {line}".rstrip() for line in tool.info.description.splitlines()]
    lines += [
        f"    - {name}: {allowed}" + (f". {description}" if description else "")
        for name, allowed, description in _describe_parameters(tool)
    ]
    lines += [f"    Warning: {warning}" for warning in warnings]
    return "\n".join(lines)
