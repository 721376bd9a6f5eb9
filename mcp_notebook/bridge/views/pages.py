"""The pages that clients show beside results, as resources ``ui://mcp-notebook/...``.

Runs on the bridge's event loop. The page for tables and plots is a file beside this module, read
when a client first asks; it loads nothing from anywhere: its styles and its script are in it. The
own page of a tool is made by its kernel, and gets ``helper.js`` here. Both speak with their host by
``host.js``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

MIME_TYPE = "text/html;profile=mcp-app"
"""Of the pages of MCP Apps (specification of 2026-01-26, "UI Resource Format")."""


RESULT_URI = "ui://mcp-notebook/result.html"
"""The URI of the page for tables and plots."""
OWN = "own"
"""The kind of view whose page is made by the tool's author."""
_OWN_PAGE = re.compile(r"ui://mcp-notebook/tools/([A-Za-z0-9_-]+)\.html")
_HEAD = re.compile(
    r"(?:\s|<!--.*?-->)*(<!doctype[^>]*>)?(?:\s|<!--.*?-->)*(?:<html[^>]*>)?(?:\s|<!--.*?-->)*"
    r"(?:<head(?:\s[^>]*)?>)?",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a page before which no script may stand."""


@cache
def read_result_page() -> dict[str, Any]:
    """Return the page for tables and plots, as ``resources/read`` answers it."""
    page = _read_file("result.html").replace("/* host.js */", _read_file("host.js"))
    # A quarter of it is indentation and comments.
    html = re.sub(r"\n\s*(?://[^\n]*)?(?=\n)|(?<=\n) +", "", page)
    # No permissions and, by leaving out `csp`, no network.
    meta = {"ui": {"prefersBorder": False}}
    return {"uri": RESULT_URI, "mimeType": MIME_TYPE, "text": html, "_meta": meta}


def find_page_uri(kind: str | None, name: str) -> str | None:
    """Return the URI of the page beside a tool's results; None if it has none.

    Args:
        kind: See `messages.ToolInfo.view`.
        name: The name that the tool is served under.
    """
    if kind == OWN:
        return f"ui://mcp-notebook/tools/{name}.html"
    return RESULT_URI if kind == "result" else None


def find_tool(uri: str) -> str | None:
    """Return the name of the tool whose own page a URI names; None for any other URI."""
    match = _OWN_PAGE.fullmatch(uri)
    return None if match is None else match[1]


def add_helper(html: str, names: Mapping[str, str]) -> str:
    """Return an author's page with the script that talks to the client (`notebook`).

    Args:
        html: The page, or a part of one.
        names: The names that tools of the notebook are served under, by their own names.
    """
    match = _HEAD.match(html)
    assert match is not None
    start = "" if match[1] else "<!doctype html>"
    # A name that a kernel made up does not end the script.
    served = json.dumps(dict(names)).replace("<", "\\u003c")
    script = _read_file("helper.js").replace("{/* served names */}", served)
    helper = f'<meta charset="utf-8"><script>\n{{\n{_read_file("host.js")}{script}}}\n</script>'
    return f"{start}{html[: match.end()]}{helper}{html[match.end() :]}"


def _read_file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def make_own_meta(hosts: Sequence[str]) -> dict[str, Any]:
    """Return the ``_meta`` of an author's page, which may load from these origins."""
    csp = {"connectDomains": list(hosts), "resourceDomains": list(hosts)}
    return {"ui": {"csp": csp} if hosts else {}}
