"""Makes the ids of kernels' records.

Runs in every process. Apart from `records`, because a headless kernel starts before its bridge has
loaded pydantic, which takes a tenth of a second.
"""

import secrets


def make_id() -> str:
    """Return an id for a record; a short one, because it becomes part of a socket's path."""
    return secrets.token_hex(6)
