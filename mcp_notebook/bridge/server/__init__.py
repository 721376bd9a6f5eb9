"""MCP's server: connects the rooms below, and answers the requests of all transports.

Face: `server.NotebookServer`, whose ``requests`` answers all requests (`requests`);
`declaration`, the server's description of itself.

Threads: everything runs on the bridge's event loop, except the encoding of large resources.

Both eras of the protocol are answered here: with sessions, up to 2025-11-25; without, from
2026-07-28. Clients always get valid messages: failures are results with ``isError``, and a tool
that MCP does not accept is left out of the list instead of breaking it. `protocol` says what a
request may be, `kernels` knows which kernels exist and names their tools, and `transports` carry
the bytes.
"""
