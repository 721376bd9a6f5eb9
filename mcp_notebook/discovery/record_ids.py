"""Makes the ids of kernels' records.

Runs in every process. Not in `records`: a bridge starts its headless kernel before it imports that
module.
"""

import secrets


def make_id() -> str:
    """Return an id for a record. It is short because it becomes part of a socket's path."""
    return secrets.token_hex(6)
