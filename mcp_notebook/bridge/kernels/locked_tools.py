"""``--locked``: what a notebook offers is compared with its lock before clients see it.

Runs on the bridge's event loop, whenever a kernel tells what it offers, and reads the lock's file.
A tool that has changed in a way that breaks a caller is not offered, and without a lock nothing is.
What the lock does not know breaks nobody: it is offered, without a digest.
"""

from pathlib import Path

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.lock_file import Lock, describe, read_lock
from mcp_notebook.lock.tool_changes import compare_entries
from mcp_notebook.text.missing_tools import LASTING, DroppedTool
from mcp_notebook.wire import messages


def require_lock(notebook: Path) -> Lock:
    """Return a notebook's lock.

    Raises:
        NotebookError: There is none, or it cannot be read.
    """
    lock = read_lock(notebook)
    if lock is None:
        raise NotebookError(
            f"{notebook.name} has no lock, and `--locked` offers only what is locked. "
            f"`mcp-notebook check {notebook.name} --lock` writes one."
        )
    return lock


def keep_locked(message: messages.Welcome | messages.Tools, notebook: Path) -> messages.Tools:
    """Return what a kernel offers, without what its notebook's lock refuses, and with digests."""
    missing, kept = dict(message.missing), []
    try:
        lock = require_lock(notebook)
    except NotebookError as error:
        missing |= {tool.name: DroppedTool(str(error), LASTING, "") for tool in message.tools}
        return messages.Tools(tools=[], missing=missing, modified=message.modified)
    for tool in message.tools:
        now = describe(tool)
        changes = compare_entries(tool.name, lock.entries.get(tool.name), now)
        texts = [change.text for change in changes if change.level == "breaking"]
        if texts:
            reason = f"It has changed since it was locked on {lock.day}: {'; '.join(texts)}."
            step = f"Its author can accept that with `mcp-notebook check {notebook.name} --lock`."
            missing[tool.name] = DroppedTool(reason, LASTING, step)
        elif tool.name in lock.entries:
            meta = {**(tool.meta or {}), meta_keys.DIGEST: now["digest"]}
            kept.append(structs.replace(tool, meta=meta))
        else:
            kept.append(tool)
    return messages.Tools(tools=kept, missing=missing, modified=message.modified)
