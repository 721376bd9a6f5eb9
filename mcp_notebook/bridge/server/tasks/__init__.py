"""Calls that outlive client and bridge: MCP's extension for tasks.

Face: `tasks.Tasks`; `finder` finds them in their kernels, `forms` converts them to JSON. Runs on
the bridge's event loop; the tasks themselves live in their kernels (`kernel.tasks`).
"""
