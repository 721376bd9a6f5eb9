"""Calls of tools: from a client's request to a running call, and to its result.

Face: `tool_calls.ToolCalls`; `call_starter` has what must hold before a call may run. Runs on the
bridge's event loop.
"""
