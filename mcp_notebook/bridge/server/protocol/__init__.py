"""MCP's forms of requests, tools and results, in each of its versions.

Face: `client_request`, `client_profile`, `client_sessions`, `protocol_error`, `result_forms`,
`tool_form` (also which version has which feature), `accommodations` (workarounds for specific
clients), `detached_arguments` and `json_spans` (for large requests). Runs on the bridge's event
loop. `postponed_sdk` and `sdk_import` are imported before anything else of the SDK.

A bridge over stdio starts without the SDK. So modules here and in the rooms above do not import
`mcp` at module level, and avoid the names of `mcp_types` that load it; annotations are not
evaluated.
"""
