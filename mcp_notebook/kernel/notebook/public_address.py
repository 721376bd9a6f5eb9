"""The public address of a notebook on Binder or JupyterHub, and how to connect a client.

Runs on the kernel's main thread, when the extension is loaded and for ``%mcp status``. A kernel
knows its server's path, but often not the host: a script on the card takes it from the page. The
token is never part of an output; a button copies it from the page, within a client's settings.
"""

import json
import shlex
from collections.abc import Mapping
from html import escape
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_notebook.kernel.notebook.output_html import COPY_BUTTON, render_box, render_code
from mcp_notebook.settings.settings import SERVER_PATH
from mcp_notebook.text.wording import make_printable

_HOST = "https://HOST"
"""Placeholder for a host that the kernel does not know."""
_TOKEN = "TOKEN"  # noqa: S105 - a placeholder
_TOKEN_FILE = "notebook.token"  # noqa: S105 - a file's name
_FILL_IN = (
    "<script>(() => {"
    "const card = document.currentScript.parentElement;"
    "const data = document.getElementById('jupyter-config-data');"
    "if (!data) return;"
    "for (const code of card.querySelectorAll('code'))"
    " code.textContent = code.textContent.replace('https://HOST', location.origin);"
    "const place = card.querySelector('span[title=token]');"
    "const token = place.querySelector('a') ? '' : JSON.parse(data.textContent).token;"
    "const settings = card.querySelector('code[title=settings]');"
    "if (!navigator.clipboard) return;"
    "const button = document.createElement('button');"
    "button.textContent = token ? 'Copy with the token' : 'Copy';"
    "button.onclick = () => navigator.clipboard"
    ".writeText(settings.textContent.replace('TOKEN', () => token || 'TOKEN'))"
    ".then(() => { button.textContent = 'Copied'; });"
    "settings.after(' ', button);"
    "if (token) place.remove();"
    "})();</script>"
)
"""Replaces the placeholder by the page's host, and adds a button that copies the settings.

On a Hub, the page's token is the server's own, which may do more than a client has to: there, the
card leads to the Hub's page for tokens.

Works only on Jupyter's own pages: an exported page and VS Code have another origin. Browsers allow
copying only on HTTPS and on localhost."""


class PublicAddress(Struct, frozen=True, kw_only=True):
    """The public address of this notebook's Jupyter Server, as far as the kernel knows it."""

    place: Literal["Binder", "JupyterHub"]
    """The platform that the server runs on."""
    origin: str | None
    """Scheme and host; None if only the browser knows them."""
    path: str
    """Path of the endpoint, ``/user/ada/mcp-notebook``."""
    token_page: str | None
    """Path of the Hub's token page; None if the server has its own token."""
    is_served: bool
    """Whether the server serves tools: mcp-notebook is installed in its environment."""

    @property
    def url(self) -> str:
        """The endpoint's URL, with a placeholder if the host is unknown."""
        return f"{self.origin or _HOST}{self.path}"


def find_public_address(env: Mapping[str, str]) -> PublicAddress | None:
    """Return the notebook's public address; None if it runs neither on Binder nor on JupyterHub.

    Args:
        env: The kernel's environment variables, inherited from Jupyter Server.
    """
    prefix = env.get("JUPYTERHUB_SERVICE_PREFIX", "")
    if not prefix.startswith("/"):
        return None
    parts = urlsplit(env.get("JUPYTERHUB_PUBLIC_URL") or env.get("JUPYTERHUB_HOST") or "")
    is_binder = "BINDER_REPO_URL" in env or "BINDER_LAUNCH_HOST" in env
    base = env.get("JUPYTERHUB_BASE_URL", "/")
    served = env.get(SERVER_PATH)
    return PublicAddress(
        place="Binder" if is_binder else "JupyterHub",
        origin=f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else None,
        path=served or f"{prefix.rstrip('/')}/mcp-notebook",
        token_page=None if is_binder else f"{base.rstrip('/')}/hub/token",
        is_served=served is not None,
    )


def _format_settings(address: PublicAddress) -> str:
    """Return the settings of a client on the user's computer, with a placeholder for the token."""
    server = {
        "type": "http",
        "url": address.url,
        "headers": {"Authorization": f"Bearer {_TOKEN}"},
    }
    return json.dumps({"mcpServers": {address.place.lower(): server}})


def _format_install_line(address: PublicAddress) -> str:
    """Return the shell command that connects a client on the user's computer."""
    url = shlex.quote(address.url)
    return f"mcp-notebook install claude-desktop --url {url} --token-file {_TOKEN_FILE}"


def describe_access(address: PublicAddress) -> str:
    """Return a sentence on how assistants on other computers reach the notebook's tools."""
    place = "Binder" if address.place == "Binder" else "this JupyterHub"
    if not address.is_served:
        return f"On {place}, other computers cannot reach it yet: `%mcp status` says why."
    where = address.url if address.origin else f"{address.path} on this server"
    return make_printable(
        f"On {place}, other computers reach it at {where}: `%mcp status` shows what to run on "
        "yours."
    )


def build_address_card(address: PublicAddress) -> dict[str, str]:
    """Return the card that explains how to connect, as a MIME bundle."""
    place = "Binder" if address.place == "Binder" else "this JupyterHub"
    if not address.is_served:
        text = (
            f"On {place}, other computers cannot reach these tools yet: mcp-notebook is installed "
            "only in this kernel's environment. Install it in the environment of the Jupyter "
            "Server and restart the server."
        )
        return {"text/plain": text, "text/html": render_box(escape(text))}
    title = f"On {place}, connect an assistant on your own computer in three steps:"
    settings, line = _format_settings(address), _format_install_line(address)
    token = (
        f"`{_TOKEN}` is a token from the Hub's token page, "
        f"{address.origin or _HOST}{address.token_page}"
        if address.token_page
        else f"`{_TOKEN}` is what `jupyter server list` in a terminal here shows after `token=`"
    )
    steps = (_PASTE, _START)
    plain = [
        title,
        f"1. Copy these settings; {token}:",
        f"       {settings}",
        *(f"{number}. {step}" for number, step in enumerate(steps, 2)),
        _COMMANDS,
        f"       {line}",
    ]
    html = (
        f"{escape(title)}<ol style='margin:.3em 0;padding-left:1.6em'>"
        f"<li>Copy these settings<span title='token'>; {_render_token(address, token)}</span>: "
        f"<code title='settings' style='user-select:all'>{escape(settings)}</code></li>"
        + "".join(f"<li>{render_code(step)}</li>" for step in steps)
        + f"</ol><div style='opacity:.7;font-size:.9em'>{render_code(_COMMANDS)} "
        f"<code style='user-select:all'>{escape(line)}</code>{COPY_BUTTON}</div>{_FILL_IN}"
    )
    return {"text/plain": make_printable("\n".join(plain)), "text/html": render_box(html)}


_PASTE = (
    "Paste them into the file `.mcp.json` of a new folder on your computer (Cursor: "
    "`~/.cursor/mcp.json`, Gemini CLI: `~/.gemini/settings.json`). They are secret: the token is "
    "in them."
)
_START = "Start your assistant in that folder, for example `claude`, and ask it."
_COMMANDS = (
    "Assistants that only start commands, such as Claude Desktop, need mcp-notebook on your "
    f"computer, and the token in a file that only you can read, here `{_TOKEN_FILE}`:"
)


def _render_token(address: PublicAddress, text: str) -> str:
    if address.token_page is None:
        return render_code(text)
    page = escape(f"{address.origin or ''}{address.token_page}")
    name = f"<code>{_TOKEN}</code>"
    return f"{name} is a token from <a href='{page}' target='_blank'>the Hub's token page</a>"
