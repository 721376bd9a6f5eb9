"""MCP's server: connects the rooms below, and answers the requests that go through the SDK.

Face: `server.NotebookServer`, whose ``mcp`` is what transports serve (`sdk_server` builds it on
first use); `declaration`, the server's description of itself.

Threads: everything runs on the bridge's event loop, except the encoding of large resources.

The door to the MCP SDK's types and errors, for both eras of the protocol: with sessions, up to
2025-11-25; without, from 2026-07-28. Clients always get valid messages: failures are results with
``isError``, and a tool that MCP does not accept is left out of the list instead of breaking it.
`kernels` knows which kernels exist and names their tools; `transports` carry the bytes.
"""
