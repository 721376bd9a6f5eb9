"""The lock of a notebook's tools, and what changed since.

Face: `lock_file` reads and writes the lock, ``sales.tools.lock`` beside ``sales.ipynb``;
`tool_changes` says for each difference whether it breaks a caller.

`schema_changes` compares two JSON Schemas. All of it is pure, apart from the file, and runs in the
kernel (cards, side panel), in bridges (``--locked``) and in ``mcp-notebook check``.
"""
