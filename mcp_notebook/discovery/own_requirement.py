"""Where this package was installed from, so that another environment gets the same one.

Runs in any thread of the bridge, a command or Jupyter Server.
"""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution

from mcp_notebook._version import __version__

_NAME = "mcp-notebook"
_PLAIN = re.compile(r"[a-z0-9](?:[\w.:/@+=~-]|%(?!CD))*", re.ASCII | re.IGNORECASE)
"""The shell of Windows expands ``%CD%``; there are no variables like ``%20wheels%``."""


def find_own_requirement() -> list[str]:
    """Return the arguments of ``uv add`` for this package, from where it was installed."""
    try:
        text = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # a copy on the path
        text = None
    if text is None:
        return [f"{_NAME}=={__version__}"]
    origin = json.loads(text)
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return [f"{_NAME} @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"]
    is_editable = origin.get("dir_info", {}).get("editable", False)
    return [*(["--editable"] if is_editable else []), f"{_NAME} @ {origin['url']}"]


def find_plain_requirement() -> str:
    """Return what pip installs to get this package, as IPython and any shell leave it.

    Not editable, even if it is so here: a kernel that runs would not see it.

    Returns:
        A word that needs no quotes; empty if there is none.
    """
    requirement = find_own_requirement()[-1].removeprefix(f"{_NAME} @ ")
    return requirement if _PLAIN.fullmatch(requirement) else ""
