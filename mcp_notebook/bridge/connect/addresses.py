"""What the user gave as an address: an endpoint of MCP, or any page of a Jupyter server.

Pure. People paste what the browser shows, as ``https://hub/user/x/lab/tree/a.ipynb?token=...``;
which path of it is MCP, `find_endpoint` asks the server. ``binder:OWNER/REPO@REF`` and a link to a
Binder name a repository to start (`binder`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.errors import RemoteError

_PATH = "mcp"
_SHOWS_FILE = ("tree", "notebooks", "edit", "view", "files")
"""The words of Jupyter's addresses that a file's path follows."""
_PAGES = frozenset(
    {*_SHOWS_FILE, "api", "consoles", "doc", "lab", "login", "logout", "nbclassic", "retro"}
    | {"terminals", "voila"}
)
"""The words with which the address of a page begins, below the address of its server."""
_SAFE = "!$&'()*+,;=:@~"
"""Characters of a path that need no quotes."""
_BINDER_PROVIDERS = ("gh", "gl", "git", "gist", "zenodo", "figshare", "hydroshare", "dataverse")
_PUBLIC_BINDER = "https://mybinder.org"


@dataclass(frozen=True)
class Address:
    """Where to look for an endpoint."""

    endpoints: tuple[str, ...]
    """Addresses that may be one, in the order to try them."""
    server: str
    """Address of the Jupyter server, if it is one."""
    token: str | None = field(default=None, repr=False)
    """The secret in what was pasted."""


@dataclass(frozen=True)
class BinderRepository:
    """A repository that a Binder is to start."""

    binder: str
    """Address of the BinderHub."""
    spec: str
    """Provider, repository and version, as in the BinderHub's addresses."""
    path: str | None = None
    """The notebook in it to use."""


def read_address(text: str) -> Address | BinderRepository:
    """Return what an address leads to.

    Raises:
        RemoteError: It cannot be one.
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
            "This is not the address of a server. It begins with http:// or https:// and the "
            "server's name, or it is binder:OWNER/REPO@REF."
        )
    if parts.username is not None or parts.password is not None:
        raise RemoteError(
            f"The address has a name or a password in it (before @{host}), which is not sent. "
            "Leave them out, and name a token with --token-file."
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
    """Check that nobody on the way to a server can read what goes there.

    Raises:
        RemoteError: They can, and the user has not said that it is well.
    """
    parts = urlsplit(url)
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
        raise RemoteError(
            f"{parts.scheme}://{parts.netloc} is another machine, and nothing is encrypted: "
            "everybody on the way reads the token and all results. Connect with https://, or add "
            "--insecure if something else encrypts, such as a tunnel."
        )


def find_hub(url: str) -> str | None:
    """Return the address of the JupyterHub that a user's server is behind, None if it is none."""
    parts = urlsplit(url)
    words = parts.path.split("/")
    if "user" not in words[:-1]:
        return None
    return f"{parts.scheme}://{parts.netloc}" + "/".join(words[: words.index("user")])


def _add_scheme(text: str) -> str:
    host = re.split(r"[/?#]", text)[0]
    if host.endswith(".ipynb") or not re.fullmatch(r"[\w.-]+(:\d+)?|\[[\da-fA-F:]+\](:\d+)?", host):
        raise RemoteError(
            f"{text.partition('?')[0]!r} is not an address. Paste that of the Jupyter server, as "
            "the browser shows it, or that of MCP, which ends in /mcp. A file is served by "
            "`mcp-notebook stdio FILE`."
        )
    local = is_loopback(re.sub(r":\d+$", "", host))
    return f"{'http' if local else 'https'}://{text}"


def _make_address(origin: str, words: Sequence[str], token: str | None) -> Address:
    words = list(words)
    # hub/user/NAME is what the Hub shows for a server that does not run.
    if "hub" in words and words[words.index("hub") + 1 :][:1] == ["user"]:
        words.pop(words.index("hub"))
    after_user = words.index("user") + 2 if "user" in words[:-1] else 0
    if not after_user and "hub" in words:
        raise RemoteError(
            f"{_join(origin, words)} is a page of the JupyterHub, and not of a server on it. Open "
            "your server in the browser, and take the address from there: it has /user/ in it."
        )
    if _PATH in words[after_user:]:
        at = words.index(_PATH, after_user)
        return Address((_join(origin, words),), _join(origin, words[:at]), token)
    pages = [at for at in range(after_user, len(words)) if words[at] in _PAGES]
    if pages:
        server = words[: pages[0]]
        notebook = _find_notebook(words[pages[0] :])
        endpoint = _join(origin, [*server, _PATH, *notebook])
        return Address((endpoint,), _join(origin, server), token)
    below = _join(origin, [*words, _PATH])
    itself = _join(origin, words)
    return Address((below,) if after_user or not words else (below, itself), itself, token)


def _find_notebook(words: Sequence[str]) -> Sequence[str]:
    """Return the path of the notebook that a page shows, nothing if it shows none."""
    at = next((at for at, word in enumerate(words) if word in _SHOWS_FILE), len(words))
    path = list(words[at + 1 :])
    if not path or not path[-1].endswith(".ipynb"):
        return []
    return [path[0].removeprefix("RTC:"), *path[1:]]


def _join(origin: str, words: Iterable[str]) -> str:
    return "/".join([origin, *(quote(word, safe=_SAFE) for word in words)])


def _read_binder(text: str) -> BinderRepository:
    match = re.fullmatch(r"binder:([\w.-]+)/([\w.-]+)(?:@([\w./-]+))?", text, re.IGNORECASE)
    if match is None:
        raise RemoteError(
            f"{text!r} names no repository. Write binder:OWNER/REPO@REF, where REF is a branch, a "
            "tag or a commit, or paste the link to the Binder."
        )
    return BinderRepository(_PUBLIC_BINDER, f"gh/{match[1]}/{match[2]}/{match[3] or 'HEAD'}")


def _read_binder_link(origin: str, words: Sequence[str], query: str) -> BinderRepository:
    at = words.index("v2")
    options = parse_qs(query)
    path = next(iter(options.get("labpath") or options.get("filepath") or ()), None)
    if path is None and options.get("urlpath"):
        path = "/".join(_find_notebook(options["urlpath"][0].partition("?")[0].split("/")))
    spec = "/".join(quote(word, safe=_SAFE) for word in words[at + 1 :])
    return BinderRepository(_join(origin, words[:at]), spec, path or None)
