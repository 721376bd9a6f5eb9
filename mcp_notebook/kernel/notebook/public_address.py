"""Where assistants outside reach a notebook on Binder or a JupyterHub, and what connects them.

Runs on the kernel's main thread, when the extension is loaded and for ``%mcp status``. A kernel
knows its server's path, but often not the host: where scripts run, the card takes that from the
page that shows it. The token is never part of an output; a button can copy it from the page.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal
from urllib.parse import urlsplit

from mcp_notebook.kernel.notebook.output_html import COPY_BUTTON, render_box, render_code
from mcp_notebook.settings.settings import SERVER_PATH
from mcp_notebook.text.wording import make_printable

_HOST = "https://HOST"
"""Stands for the host of the page where a kernel does not know it."""
_TOKEN_FILE = "notebook.token"  # noqa: S105 - a file's name
_FILL_IN = (
    "<script>(() => {"
    "const card = document.currentScript.parentElement;"
    "const data = document.getElementById('jupyter-config-data');"
    "if (!data) return;"
    "for (const code of card.querySelectorAll('code'))"
    " code.textContent = code.textContent.replace('https://HOST', location.origin);"
    "const token = JSON.parse(data.textContent).token;"
    "const place = card.querySelector('span[title=token]');"
    "if (!token || !place || !navigator.clipboard) return;"
    "const button = document.createElement('button');"
    "button.textContent = 'Copy the token';"
    "button.onclick = () => navigator.clipboard.writeText(token)"
    ".then(() => { button.textContent = 'Copied'; });"
    "place.replaceChildren(button);"
    "})();</script>"
)
"""Puts the page's host into the lines, and a button in place of the words about the token.

Only on a page of Jupyter's: an exported page and VS Code have another origin. Only pages that are
served over HTTPS, or by this machine, can copy for their users."""


@dataclass(frozen=True, kw_only=True)
class PublicAddress:
    """The address of this notebook's Jupyter Server, as far as a kernel knows it."""

    place: Literal["Binder", "JupyterHub"]
    """What the server runs on."""
    origin: str | None
    """Scheme and host; None: only the browser knows them."""
    path: str
    """Path of the endpoint, ``/user/ada/mcp``."""
    token_page: str | None
    """Path of the page where a Hub gives tokens; None: the server has one of its own."""
    is_served: bool
    """Whether the server serves tools there: mcp-notebook is installed beside it."""

    @property
    def url(self) -> str:
        """The endpoint's address; a stand-in for the host where it is not known."""
        return f"{self.origin or _HOST}{self.path}"


def find_public_address(env: Mapping[str, str]) -> PublicAddress | None:
    """Return where the notebook is reached from outside; None on a machine of one's own.

    Args:
        env: The kernel's environment variables, which Jupyter Server hands on.
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
        path=served or f"{prefix.rstrip('/')}/mcp",
        token_page=None if is_binder else f"{base.rstrip('/')}/hub/token",
        is_served=served is not None,
    )


def _format_install_line(address: PublicAddress) -> str:
    """Return the line for a shell on the user's own computer that connects a client."""
    url = shlex.quote(address.url)
    return f"mcp-notebook install claude-code --url {url} --token-file {_TOKEN_FILE}"


def describe_access(address: PublicAddress) -> str:
    """Say in one sentence how assistants outside reach the notebook's tools, if they do."""
    place = "Binder" if address.place == "Binder" else "this JupyterHub"
    if not address.is_served:
        return f"On {place}, assistants outside cannot reach it yet: `%mcp status` says why."
    where = address.url if address.origin else f"{address.path} on this server"
    return make_printable(
        f"On {place}, assistants outside reach it at {where}: `%mcp status` shows what to run "
        "on your own computer."
    )


def build_address_card(address: PublicAddress) -> dict[str, str]:
    """Return what says how assistants reach the notebook, as a MIME bundle."""
    place = "Binder" if address.place == "Binder" else "this JupyterHub"
    if not address.is_served:
        text = (
            f"On {place}, assistants outside cannot reach these tools yet: mcp-notebook is not "
            "installed in the environment of the Jupyter Server, only in that of this kernel. "
            "Install it there and start the server again."
        )
        return {"text/plain": text, "text/html": render_box(escape(text))}
    line = _format_install_line(address)
    steps = (
        ("The token", _describe_token(address)),
        (
            "On your own computer",
            f"keep it in a file that only you can read, here `{_TOKEN_FILE}`.",
        ),
        ("There, in a terminal", "`pip install mcp-notebook`, and then for your client:"),
    )
    title = f"On {place}, assistants reach the tools of the open notebooks at"
    plain = [
        f"{title} {address.url}",
        *(f"- {head}: {text}" for head, text in steps),
        f"    {line}",
    ]
    rows = "".join(
        f"<li>{escape(head)}: {_render_token(address) if not number else render_code(text)}</li>"
        for number, (head, text) in enumerate(steps)
    )
    html = (
        f"{escape(title)} <code>{escape(address.url)}</code>"
        f"<ol style='margin:.3em 0;padding-left:1.4em'>{rows}</ol>"
        f"<code style='user-select:all'>{escape(line)}</code>{COPY_BUTTON}"
        f"<div style='opacity:.7;font-size:.9em'>{render_code(_OTHERS)}</div>{_FILL_IN}"
    )
    return {"text/plain": make_printable("\n".join(plain)), "text/html": render_box(html)}


_OTHERS = "`mcp-notebook install` names the other clients."


def _describe_token(address: PublicAddress) -> str:
    if address.token_page is None:
        return "`jupyter server list` in a terminal here shows it, after `token=`."
    return f"make one on the Hub's token page, {address.origin or _HOST}{address.token_page}"


def _render_token(address: PublicAddress) -> str:
    if address.token_page is None:
        return f"<span title='token'>{render_code(_describe_token(address))}</span>"
    page = escape(f"{address.origin or ''}{address.token_page}")
    return f"make one on <a href='{page}' target='_blank'>the Hub's token page</a>."
