"""MCP's server: puts the rooms below together, and answers what goes through the SDK.

Face: `server.NotebookServer`, whose ``mcp`` is what transports serve (`sdk_server` builds it when
it is first asked for); `declaration`, what the server says of itself.

Threads: everything runs on the bridge's event loop, except the encoding of large resources.

The door to the MCP SDK's types and errors, for both eras of the protocol: with sessions, up to
2025-11-25; without, from 2026-07-28. Clients always get valid messages: failures are results with
``isError``, and a tool that MCP does not accept is left out of the list instead of breaking it.
Which kernels exist and what their tools are called is the business of `kernels`; how bytes travel,
that of `transports`.
"""
