"""The magics: ``%%mcp_tool``, ``%mcp_tool``, and ``%mcp`` with its verbs.

Face: `magics.McpMagics`, `mcp_verbs.Notebook` and `completion`; `option_help` is the help on a
tool's options. Runs on the kernel's main thread.
"""
