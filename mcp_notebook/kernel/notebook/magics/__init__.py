"""The magics: ``%%mcp_tool``, ``%mcp_tool``, and ``%mcp`` with its verbs.

Face: `magics.McpMagics`, `mcp_verbs.Notebook` and `completion`; `option_help` explains the options
of a tool. Runs on the kernel's main thread.
"""
