"""Calls that outlive client and bridge, in the form of MCP's extension for tasks.

Face: `tasks.Tasks` and `tasks.TaskPolicy`; `forms` has their JSON, `requests` answers
requests about them, `notices` tells clients of changes. Runs on the bridge's event loop; the tasks
themselves live in their kernels (`kernel.tasks`).
"""
