"""Skills in the form of MCP's extension (SEP-2640), and their folders.

Runs on the bridge's event loop; pure. A skill is what the kernels declare as resources with fixed
texts, one for each file; `resources` lists and reads them like all others. Here, the files of one
folder are put together: with a ``SKILL.md`` at their root, they are a skill. The digests are of the
texts that the bridge holds, so that what a client reads always fits its entry, even while the
kernel is busy.

A caller sees a skill if it may use that file's declaration: permissions apply to it as to a tool,
by its name (``weekly-report/SKILL.md``) and its tags, and it counts as read-only.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from mcp_notebook.bridge.kernels.catalog import CatalogEntry

Form: TypeAlias = dict[str, Any]
"""A JSON object in MCP's form."""
SKILL_SETTINGS = {"directoryRead": True}
"""The extension's settings: `SkillRequests` answers ``resources/directory/read``."""
DIRECTORY = "inode/directory"
"""The MIME type of a folder."""
_ROOT_FILE = "/SKILL.md"


def list_skills(files: Sequence[CatalogEntry]) -> list[Form]:
    """Return the entries of the skills among files, in MCP's form.

    Args:
        files: The resources with fixed texts, of all skills.
    """
    skills = []
    for entry in files:
        if entry.tool.front_matter is None or not entry.uri.endswith(_ROOT_FILE):
            continue
        folder = entry.uri.removesuffix("SKILL.md")
        others = [file for file in files if file.uri.startswith(folder) and file is not entry]
        skills.append(
            {
                "uri": entry.uri,
                "frontmatter": entry.tool.front_matter,
                "resources": [_describe_file(file) for file in (entry, *others)],
            }
        )
    return skills


def _describe_file(file: CatalogEntry) -> Form:
    data = (file.tool.text or "").encode()
    return {
        "uri": file.uri,
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "size": len(data),
    }


def list_children(folder: str, files: Iterable[CatalogEntry]) -> list[Form]:
    """Return the files and folders directly in a folder, in MCP's form.

    Args:
        folder: Its URI, without a slash at its end.
        files: The resources with fixed texts, of all skills.
    """
    children: dict[str, Form] = {}
    prefix = f"{folder}/"
    for file in files:
        if "://" not in folder or folder.endswith("/") or not file.uri.startswith(prefix):
            continue
        name, slash, _ = file.uri.removeprefix(prefix).partition("/")
        uri = f"{prefix}{name}"
        children[uri] = (
            {"uri": uri, "name": name, "mimeType": DIRECTORY}
            if slash
            else {"uri": uri, "name": name, "mimeType": file.tool.mime_type}
        )
    return list(children.values())
