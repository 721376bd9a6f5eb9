"""Calls of tools: from a client's request to a running call, and to its result.

Face: `tool_calls.ToolCalls`; `call_starter.CallStarter`, and the `gates` that each call passes;
`tool_call.ToolCall`, a call on its way; `tool_questions` asks the client's user what a running tool
wants to know. Runs on the bridge's event loop.
"""
