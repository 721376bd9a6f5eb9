"""MCP's extension ``io.modelcontextprotocol/tasks``: calls that outlive client and bridge.

Face: `tasks.Tasks` and `tasks.TaskPolicy`; `notices` tells clients of changes. Runs on the bridge's
event loop; the tasks themselves live in their kernels (`kernel.tasks`).
"""
