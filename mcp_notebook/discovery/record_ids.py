"""Ids of kernels' records.

Runs in every process.
"""

import secrets


def make_id() -> str:
    """Return an id for a record; a short one, because it becomes part of a socket's path."""
    return secrets.token_hex(6)
