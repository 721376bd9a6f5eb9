"""The magics: ``%%mcp_tool``, ``%mcp_tool``, and ``%mcp`` with its verbs.

Face: `magics.McpMagics` and `completion`. Runs on the kernel's main thread.
"""
