"""MCP's requests <-> calls to kernels: tools, resources, progress, logging and elicitation.

Face:

- `server`: `NotebookServer`, whose ``mcp`` is what transports serve.
- `sdk_import`: imported before anything else of the SDK, it leaves out what no bridge uses.
- `tasks.TaskPolicy`: which calls outlive their clients.
- `tool_form.find_rejection`: why MCP does not accept a tool.
- `large_calls`: `detach_arguments` (and `json_spans.NotJson`), for transports.
- `plain_requests`, `plain_answers`, `plain_channel`, `client_request` and `client_sessions`: what
  transports answer without the SDK; `base64_text`: the parts of such an answer.

Threads: everything runs on the bridge's event loop, except the encoding of large resources.

The door to the MCP SDK's types and errors, for both eras of the protocol: with sessions, up to
2025-11-25; without, from 2026-07-28. Clients always get valid messages: failures are results with
``isError``, and a tool that MCP does not accept is left out of the list instead of breaking it.
Which kernels exist and what their tools are called is the business of `kernels`; how bytes travel,
that of `transports`.
"""
