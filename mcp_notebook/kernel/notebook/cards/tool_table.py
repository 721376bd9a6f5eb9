"""The list of a notebook's tools, for ``%mcp list``: HTML and plain text.

Runs on the kernel's main thread. Pure: tools go in, a MIME bundle comes out.
"""

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType

from mcp_notebook.kernel.notebook.cards.signatures import format_signature
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.text.wording import make_printable
from mcp_notebook.wire import messages

_LEFT = "<td style='text-align:left'>"  # notebooks align cells to the right


def build_table(
    tools: Sequence[DeclaredTool], names: Mapping[str, messages.ListedName] = MappingProxyType({})
) -> dict[str, str]:
    """Return the MIME bundle that lists tools, one per line.

    Args:
        tools: The tools, in order.
        names: Those that clients see under other names, by their own.
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
