"""``--locked``: what a notebook offers is compared with its lock before clients see it.

Runs on the bridge's event loop, whenever a kernel tells what it offers; reads the lock's file. Only
what is in the lock is offered, and only if it has not changed in a way that breaks a caller.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.errors import NotebookError
from mcp_notebook.lock.lock_file import Lock, describe, find_key, find_path, read_lock
from mcp_notebook.text.missing_tools import LASTING, DroppedTool
from mcp_notebook.wire import messages
from mcp_notebook.wire.resource_uris import VARIABLE_SCHEME


def keep_locked(message: messages.Welcome | messages.Tools, notebook: str | None) -> messages.Tools:
    """Return what a kernel offers, without what its lock refuses, and with digests.

    Args:
        message: What it offers.
        notebook: The path of its notebook; None if it has no file.
    """
    name = Path(notebook).name if notebook else "NOTEBOOK"
    lock, problem = _read(notebook)
    missing = dict(message.missing)
    kept = []
    for tool in message.tools:
        if (tool.uri or "").startswith(f"{VARIABLE_SCHEME}:"):
            kept.append(tool)  # of `--inspect`: no notebook declares it
        elif reason := problem or _find_reason(lock, tool):
            step = f"Its author can accept that with `mcp-notebook check {name} --lock`."
            missing[tool.name] = DroppedTool(reason, LASTING, step)
        else:
            meta = {**(tool.meta or {}), meta_keys.DIGEST: describe(tool)["digest"]}
            kept.append(structs.replace(tool, meta=meta))
    return messages.Tools(tools=kept, missing=missing, modified=message.modified)


def list_locked(tools: Sequence[messages.ToolInfo], notebook: Path) -> list[messages.ToolInfo]:
    """Return the tools that are in the lock: those of a kernel that does not run, as remembered."""
    lock, _ = _read(str(notebook))
    entries = {} if lock is None else lock.entries
    return [tool for tool in tools if tool.kind == "notebook" or find_key(tool) in entries]


def _read(notebook: str | None) -> tuple[Lock | None, str]:
    """Return a notebook's lock, and otherwise why there is none."""
    try:
        lock = read_lock(find_path(Path(notebook))) if notebook else None
    except NotebookError as error:
        return None, str(error)
    return lock, "" if lock else "This bridge offers only what is locked, and there is no lock."


def _find_reason(lock: Lock | None, tool: messages.ToolInfo) -> str:
    """Return why a tool is not offered; empty if it is."""
    assert lock is not None
    if find_key(tool) not in lock.entries:
        return f"It is not in the lock of {lock.day}."
    texts = [each.text for each in lock.find_changes(tool) if each.level == "breaking"]
    return f"It has changed since it was locked on {lock.day}: {'; '.join(texts)}." if texts else ""
