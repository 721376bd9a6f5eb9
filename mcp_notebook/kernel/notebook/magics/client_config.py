"""``%mcp config CLIENT``: what connects a client, to copy or as a link that opens it.

Runs on the kernel's main thread, inside the user's cell. What a client needs is known in `clients`.
"""

import re
from collections.abc import Mapping
from html import escape

from IPython.core.error import UsageError

from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.clients.servers import build_server
from mcp_notebook.clients.snippets import Snippet, render_snippet
from mcp_notebook.kernel.notebook.output_html import COPY_BUTTON, render_code
from mcp_notebook.kernel.notebook.public_address import build_address_card, find_public_address
from mcp_notebook.kernel.notebook.verb_line import read_name
from mcp_notebook.settings.settings import Settings

CONFIG_OPTIONS = ("--http",)
"""What ``%mcp config`` takes besides a client."""
_PRE = "user-select:all;border:1px solid #8884;border-radius:4px;padding:.5em .8em;margin:.4em 0"
_SOFT = "opacity:.7;font-size:.9em"


def build_config(settings: Settings, line: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return what follows ``%mcp config`` asks for, as a MIME bundle.

    Args:
        settings: Of the notebook.
        line: What stands behind ``%mcp config``.
        env: The kernel's environment variables: they tell of Binder and a JupyterHub.

    Raises:
        UsageError: The line cannot be understood.
        ClientError: There is no such client, or it cannot connect like this.
    """
    name, options = read_name(line, "config", "client", CONFIG_OPTIONS)
    if options and name is None:
        raise UsageError("Which client? Write `%mcp config CLIENT --http`.")
    address = find_public_address(env)
    if name is None:
        return build_address_card(address) if address else _list_clients()
    client = find_client(name)
    if address is not None:
        return build_address_card(address, client.name)
    server = build_server(client, settings, http=bool(options))
    return _show_snippet(render_snippet(client, server, Machine.current()))


def _list_clients() -> dict[str, str]:
    """Return all clients, with the line that connects each."""
    heads = ("client", "shows what to copy", "does it for you, in a terminal")
    rows = [
        (client.title, f"%mcp config {client.name}", f"mcp-notebook install {client.name}")
        for client in CLIENTS.values()
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    plain = "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    )
    cell = "<td style='text-align:left;padding-right:1.4em'>"
    lines = "".join(
        f"<tr>{cell}{escape(title)}</td>{cell}<code>{escape(magic)}</code></td>"
        f"{cell}<code>{escape(command)}</code></td></tr>"
        for title, magic, command in rows
    )
    head = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in heads)
    return {
        "text/plain": plain,
        "text/html": f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>",
    }


def _show_snippet(snippet: Snippet) -> dict[str, str]:
    client, text = snippet.client, snippet.text.rstrip("\n")
    into = f"This belongs into {snippet.file}. `mcp-notebook install {client.name}` puts it there."
    notes = [into, *snippet.steps]
    plain = [text, "", *notes]
    html = f"<pre style='{_PRE}'>{escape(text)}</pre>{COPY_BUTTON}"
    if snippet.link:
        plain.append(f"Or open this link, and {client.title} adds it:\n{snippet.link}")
        html = f"{_format_link(client, snippet.link)}{html}"
    details = "".join(f"<div style='{_SOFT}'>{_format_code(note)}</div>" for note in notes)
    return {"text/plain": "\n".join(plain), "text/html": f"<div>{html}{details}</div>"}


def _format_link(client: Client, link: str) -> str:
    style = "display:inline-block;border:1px solid #8888;border-radius:4px;padding:.1em .8em"
    return f"<a href='{escape(link)}' style='{style}'>Add to {escape(client.title)}</a> or copy:"


def _format_code(text: str) -> str:
    """Return a sentence as HTML; it is Markdown, with code and words in italics."""
    return re.sub(r"\*([^*]+)\*", r"<i>\1</i>", render_code(text))
