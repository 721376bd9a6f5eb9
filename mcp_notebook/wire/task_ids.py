"""The ids of tasks: the tool's name, the kernel's id, and a random part.

Runs on both sides; no I/O. Clients show ids to models, which is why they begin with a name.
"""

import secrets

_REST = 32
"""Characters of the random part, which has 128 bits."""


def make_id(tool: str, kernel_id: str) -> str:
    """Return an id for a task; the kernel's id must not contain ``-``."""
    return f"{tool}-{kernel_id}-{secrets.token_hex(_REST // 2)}"


def find_kernel_id(task_id: str) -> str | None:
    """Return the id of a task's kernel; None if the text is not a task id."""
    parts = task_id.rsplit("-", 2)
    is_ours = len(parts) == 3 and all(parts) and len(parts[2]) == _REST  # noqa: PLR2004 - as above
    return parts[1] if is_ours else None
