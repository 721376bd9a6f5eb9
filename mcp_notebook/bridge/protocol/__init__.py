"""MCP's forms: a client's request as the bridge sees it, our types as its version has them.

Face: `client_request`, `mcp_types`, `accommodations` (what each client can take), `tool_form`,
`versions`, `large_calls`. `callers`, `client_sessions`, `json_spans` (parts of a large request) and
`base64_text` (of a large answer). Runs on the bridge's event loop. `sdk_import` is imported before
anything else of the SDK.
"""
