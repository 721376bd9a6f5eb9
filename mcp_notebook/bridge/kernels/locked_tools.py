"""``--locked``: what a notebook offers is compared with its lock before clients see it.

Runs on the bridge's event loop, whenever a kernel tells what it offers, and reads the lock's file.
A tool that has changed in a way that breaks a caller is not offered, and without a lock nothing is.
What the lock does not know breaks nobody: it is offered.
"""

from pathlib import Path

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.lock_file import describe, read_lock
from mcp_notebook.lock.tool_changes import compare_entries
from mcp_notebook.text.missing_tools import DroppedTool
from mcp_notebook.wire import messages


def keep_locked(message: messages.Welcome | messages.Tools, notebook: Path) -> messages.Tools:
    """Return what a kernel offers, without what its notebook's lock refuses, and with digests."""
    missing, kept = dict(message.missing), []
    try:
        lock = read_lock(notebook)
    except NotebookError as error:
        missing |= {tool.name: DroppedTool(str(error), 0, "") for tool in message.tools}
        return messages.Tools(tools=[], missing=missing, modified=message.modified)
    for tool in message.tools:
        now = describe(tool)
        changes = compare_entries(tool.name, lock.entries.get(tool.name), now)
        texts = [change.text for change in changes if change.level == "breaking"]
        if texts:
            reason = f"It has changed since it was locked on {lock.day}: {'; '.join(texts)}."
            step = f"Its author can accept that with `mcp-notebook check {notebook.name} --lock`."
            missing[tool.name] = DroppedTool(reason, 0, step)
        else:
            meta = {**(tool.meta or {}), meta_keys.DIGEST: now["digest"]}
            kept.append(structs.replace(tool, meta=meta))
    return messages.Tools(tools=kept, missing=missing, modified=message.modified)
