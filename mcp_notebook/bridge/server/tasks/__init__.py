"""Calls that outlive client and bridge: MCP's extension for tasks.

Face: `tasks.Tasks` and `tasks.TaskPolicy`; `forms` converts them to JSON, `requests` answers
requests about them, `notices` notifies clients of changes. Runs on the bridge's event loop; the
tasks themselves live in their kernels (`kernel.tasks`).
"""
