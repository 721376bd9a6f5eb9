"""Calls of tools: from a client's request to a running call, and to its result.

Face: `tool_calls.ToolCalls`; `call_starter.CallStarter`; `gates`, with a call on its way
(`gates.ToolCall`) and the gates that it passes; `tool_questions` asks the client's user the
questions of a running tool. Runs on the bridge's event loop.
"""
