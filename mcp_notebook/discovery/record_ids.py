"""Makes the ids of kernels' records.

Runs in every process. Not in `records`, which imports pydantic: a bridge starts its headless kernel
before that import, which takes 0.1 s.
"""

import secrets


def make_id() -> str:
    """Return an id for a record. It is short because it becomes part of a socket's path."""
    return secrets.token_hex(6)
