"""Parses the address that the user gave: an MCP endpoint, or any page of a Jupyter server.

Pure. Users paste what the browser shows, such as
``https://hub/user/x/lab/tree/a.ipynb?token=...``; `find_endpoint` then asks the server which path
is MCP. ``binder:OWNER/REPO/REF`` and Binder links name a repository to start (`binder`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.errors import RemoteError

OWN_PATH = "mcp-notebook"
"""Path segment of the endpoint on a Jupyter server."""
_SHORT_PATH = "mcp"
"""That of a bridge; on a Jupyter server, another extension may have it."""
_ENDPOINTS = (OWN_PATH, _SHORT_PATH)
_SHOWS_FILE = ("tree", "notebooks", "edit", "view", "files")
"""Path segments of Jupyter's URLs that are followed by a file's path."""
_PAGES = frozenset(
    {*_SHOWS_FILE, "api", "consoles", "doc", "lab", "login", "logout", "nbclassic", "retro"}
    | {"terminals", "voila"}
)
"""First path segments of Jupyter's pages, below the server's URL."""
_SAFE = "!$&'()*+,;=:@~"
"""Characters of a path that are not percent-encoded."""
_BINDER_PROVIDERS = ("gh", "gl", "git", "gist", "zenodo", "figshare", "hydroshare", "dataverse")
_PUBLIC_BINDER = "https://mybinder.org"


@dataclass(frozen=True)
class Address:
    """Where to look for an endpoint."""

    endpoints: tuple[str, ...]
    """Candidate URLs, in the order to try them."""
    server: str
    """URL of the Jupyter server, if it is one."""
    notebook: str | None = None
    """Path of the notebook on the Jupyter server, if the address names one."""
    token: str | None = field(default=None, repr=False)
    """The token in the pasted address."""


@dataclass(frozen=True)
class HubServer:
    """A user's server on a JupyterHub."""

    hub: str
    """URL of the JupyterHub."""
    user: str
    """The user's name, percent-encoded."""
    name: str = ""
    """The server's name, percent-encoded; "" for the user's default server."""


@dataclass(frozen=True)
class BinderRepository:
    """A repository to start on a BinderHub."""

    binder: str
    """URL of the BinderHub."""
    spec: str
    """Provider, repository and ref, as in the BinderHub's URLs."""
    path: str | None = None
    """The notebook to open."""


def read_address(text: str) -> Address | BinderRepository:
    """Parse an address.

    Raises:
        RemoteError: It is not an address.
    """
    text = text.strip().strip("<>\"'")
    if text.lower().startswith("binder:"):
        return _read_binder(text)
    if "://" not in text:
        text = _add_scheme(text)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise RemoteError(f"The address cannot be read: {error}. Copy it again.") from None
    if parts.scheme not in ("http", "https") or not host or not re.fullmatch(r"[\w.:%-]+", host):
        raise RemoteError(
            "This is not the address of a server. Give a URL that begins with http:// or https://, "
            "or binder:OWNER/REPO/REF."
        )
    if parts.username is not None or parts.password is not None:
        raise RemoteError(
            f"The address contains a user name or a password (before @{host}), which is not "
            "supported. Remove it, and name a file with the token with --token-file."
        )
    name = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{name}" + (f":{port}" if port is not None else "")
    words = [unquote(word) for word in parts.path.split("/") if word]
    token = next(iter(parse_qs(parts.query).get("token", ())), None)
    if "v2" in words and words[words.index("v2") + 1 :][:1] in [
        [name] for name in _BINDER_PROVIDERS
    ]:
        return _read_binder_link(origin, words, parts.query)
    return _make_address(origin, words, token)


def check_encryption(url: str, *, insecure: bool) -> None:
    """Check that the connection to a server is encrypted, or need not be.

    Raises:
        RemoteError: It is not encrypted, and the user has not allowed that.
    """
    parts = urlsplit(url)
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
        raise RemoteError(
            f"{parts.scheme}://{parts.netloc} is another machine, and the connection is not "
            "encrypted: anyone on the network can read the token and all results. Connect with "
            "https://, or add --insecure if something else encrypts, such as a tunnel."
        )


def find_hub(url: str) -> str | None:
    """Return the URL of the JupyterHub that runs a user's server; None without a JupyterHub."""
    parts = urlsplit(url)
    words = parts.path.split("/")
    if "user" not in words[:-1]:
        return None
    return f"{parts.scheme}://{parts.netloc}" + "/".join(words[: words.index("user")])


def find_server(url: str) -> HubServer | None:
    """Return the user's server on a JupyterHub that a URL belongs to; None without a JupyterHub.

    Args:
        url: The URL of the server.
    """
    hub = find_hub(url)
    if hub is None:
        return None
    words = urlsplit(url).path.split("/")
    user, name = [*words[words.index("user") + 1 :], ""][:2]
    return HubServer(hub, user, name)


def _add_scheme(text: str) -> str:
    host = re.split(r"[/?#]", text)[0]
    if host.endswith(".ipynb") or not re.fullmatch(r"[\w.-]+(:\d+)?|\[[\da-fA-F:]+\](:\d+)?", host):
        raise RemoteError(
            f"{text.partition('?')[0]!r} is not an address. Paste the address of the Jupyter "
            "server, as the browser shows it, or of an MCP endpoint, which ends in /mcp or "
            "/mcp-notebook. To serve a file, run `mcp-notebook stdio FILE`."
        )
    local = is_loopback(re.sub(r":\d+$", "", host))
    return f"{'http' if local else 'https'}://{text}"


def _make_address(origin: str, words: Sequence[str], token: str | None) -> Address:
    words = list(words)
    # The Hub shows hub/user/NAME for a stopped server.
    if "hub" in words and words[words.index("hub") + 1 :][:1] == ["user"]:
        words.pop(words.index("hub"))
    after_user = words.index("user") + 2 if "user" in words[:-1] else 0
    if not after_user and "hub" in words:
        raise RemoteError(
            f"{_join(origin, words)} is a page of the JupyterHub, not of your server. Open your "
            "server in the browser, and copy its address, which contains /user/."
        )
    at = next((at for at in range(after_user, len(words)) if words[at] in _ENDPOINTS), None)
    if at is not None:
        path = "/".join(words[at + 1 :]) if words[-1].endswith(".ipynb") else None
        own = [*words[:at], OWN_PATH, *words[at + 1 :]]
        endpoints = dict.fromkeys((_join(origin, words), _join(origin, own)))
        return Address(tuple(endpoints), _join(origin, words[:at]), path, token)
    pages = [at for at in range(after_user, len(words)) if words[at] in _PAGES]
    if pages:
        server = words[: pages[0]]
        notebook = _find_notebook(words[pages[0] :])
        endpoint = _join(origin, [*server, OWN_PATH, *notebook])
        path = "/".join(notebook) or None
        return Address((endpoint,), _join(origin, server), path, token)
    below = [_join(origin, [*words, path]) for path in _ENDPOINTS]
    itself = _join(origin, words)
    urls = below if after_user or not words else [*below, itself]
    return Address(tuple(urls), itself, token=token)


def _find_notebook(words: Sequence[str]) -> Sequence[str]:
    """Return the path of the notebook that a page shows, [] without one."""
    at = next((at for at, word in enumerate(words) if word in _SHOWS_FILE), len(words))
    path = list(words[at + 1 :])
    if not path or not path[-1].endswith(".ipynb"):
        return []
    return [path[0].removeprefix("RTC:"), *path[1:]]


def _join(origin: str, words: Iterable[str]) -> str:
    return "/".join([origin, *(quote(word, safe=_SAFE) for word in words)])


def _read_binder(text: str) -> BinderRepository:
    repository, _, query = text.partition("?")
    pattern = r"binder:([\w.-]+)/([\w.-]+)(?:[@/]([\w./-]+))?"
    match = re.fullmatch(pattern, repository, re.IGNORECASE)
    if match is None:
        raise RemoteError(
            f"{text!r} is not a repository. Write binder:OWNER/REPO/REF, where REF is a branch, a "
            "tag or a commit, or paste a Binder link."
        )
    spec = f"gh/{match[1]}/{match[2]}/{match[3] or 'HEAD'}"
    return BinderRepository(_PUBLIC_BINDER, spec, _find_path(query))


def _read_binder_link(origin: str, words: Sequence[str], query: str) -> BinderRepository:
    at = words.index("v2")
    spec = "/".join(quote(word, safe=_SAFE) for word in words[at + 1 :])
    return BinderRepository(_join(origin, words[:at]), spec, _find_path(query))


def _find_path(query: str) -> str | None:
    """Return the notebook that a Binder link opens, None without one."""
    options = parse_qs(query)
    path = next(iter(options.get("labpath") or options.get("filepath") or ()), None)
    if path is None and options.get("urlpath"):
        path = "/".join(_find_notebook(options["urlpath"][0].partition("?")[0].split("/")))
    return path or None
