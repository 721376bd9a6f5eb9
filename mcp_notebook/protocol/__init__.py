"""MCP as data, for servers and clients: versions, methods, messages, errors and headers.

Face, all of it: `versions` and what differs between them, `errors` with their codes, `messages` (of
JSON-RPC), `methods` (the table of requests, and their parameters), `elicitation` (questions to the
user), and `headers` and `parameter_headers`, which repeat parts of a message over HTTP since
2026-07-28. The specification: https://modelcontextprotocol.io/specification/2026-07-28

Any process and any thread may use this; all of it is pure. `bridge.server` answers the requests,
`bridge.transports` carry the messages, and `mcp_client` is the other end.
"""
